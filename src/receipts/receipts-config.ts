import { isLoopback } from '../loopback';
import { OperatorError } from '../operator-error';
import { portExpected, readPort } from '../port';

/** What the receipts process is told by its environment. */
export interface ReceiptsConfig {
  readonly host: string;
  readonly port: number;
  readonly databaseUrl: string;
  /** File of bearer tokens; undefined where everybody is the account `local`. */
  readonly tokensFile: string | undefined;
}

/**
 * Reads RECEIPTS_HOST (default 127.0.0.1), RECEIPTS_PORT (default 50053; 0 takes any free port), DATABASE_URL and
 * AUTH_TOKENS_FILE. An empty variable counts as unset.
 *
 * @throws OperatorError that names every variable at fault; it never repeats DATABASE_URL
 */
export function readReceiptsConfig(environment: NodeJS.ProcessEnv): ReceiptsConfig {
  const host = environment['RECEIPTS_HOST'] || '127.0.0.1';
  const portText = environment['RECEIPTS_PORT'] || '50053';
  const databaseUrl = environment['DATABASE_URL'] || '';
  const tokensFile = environment['AUTH_TOKENS_FILE'] || undefined;
  const faults: string[] = [];
  const port = readPort(portText) ?? NaN;
  if (Number.isNaN(port)) {
    faults.push(`RECEIPTS_PORT is ${JSON.stringify(portText)}: expected ${portExpected(portText)}`);
  }
  if (!/^postgres(ql)?:\/\//.test(databaseUrl))
    faults.push('DATABASE_URL: expected a URL that begins with postgres://');
  if (!isLoopback(host) && tokensFile === undefined) {
    faults.push(`RECEIPTS_HOST is ${JSON.stringify(host)}: off loopback only with AUTH_TOKENS_FILE`);
  }
  if (faults.length > 0) throw new OperatorError(['settings that cannot be used:', ...faults].join('\n  '));
  return { host, port, databaseUrl, tokensFile };
}
