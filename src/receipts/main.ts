import { prepareSchema } from '../database/prepare-schema';
import { callerIdentity } from '../identity/caller-identity';
import { isLoopback } from '../loopback';
import { OperatorError } from '../operator-error';
import { createLogger, logServerEvents } from '../ops/logger';
import { startReceipts } from './receipts-app';
import { readReceiptsConfig } from './receipts-config';

/** Starts the receipts simulator in a process of its own, and stops it at SIGTERM or Ctrl-C. */
async function main(): Promise<void> {
  const { host, port, databaseUrl: connectionString, tokensFile } = readReceiptsConfig(process.env);
  const logger = createLogger({ level: 'info' });
  const { principal, warnings } = callerIdentity({ tokensFile, reachable: !isLoopback(host) });
  for (const warning of warnings) logger.warn(warning);
  process.on('unhandledRejection', (error) => logger.error(error, 'a promise was rejected and nobody looked'));
  await prepareSchema('run', { connectionString });
  const receipts = await startReceipts({
    ...{ connectionString, host, port, principal },
    onEvent: logServerEvents(logger),
    onError: (error, what) => logger.warn({ err: error }, what),
  });
  const stop = (): void => void receipts.stop().then(() => process.exit(0), fail);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop);
  console.log(`ready: receipts simulator on ${host}:${receipts.port}`);
}

/** What the operator can repair is one message; a broken promise of ours comes with its stack. */
function fail(error: unknown): never {
  console.error(error instanceof OperatorError ? error.message : error);
  process.exit(1);
}

main().catch(fail);
