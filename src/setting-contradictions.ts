import type { Config, SettingFault } from './config';
import { isLoopback } from './loopback';
import { SETTINGS } from './settings';

/**
 * Finds settings that are right by themselves and wrong together: whoever can reach the service from another machine has
 * to be told apart (design 4.3), tokens come from a file, and a port serves one of two things. A setting that is undefined could not be read; nothing is
 * said about it.
 */
export function contradictions(config: Partial<Config>): readonly SettingFault[] {
  return [...unprotectedAddresses(config), ...tokensFileFaults(config), ...samePortFaults(config)];
}

function unprotectedAddresses({ authMode, grpcHost, opsHost }: Partial<Config>): readonly SettingFault[] {
  if (authMode !== 'none') return [];
  const expected =
    '127.0.0.1, ::1 or localhost (identity is not configured, and without it only this machine may call: set ' +
    'AUTH_MODE=tokens and AUTH_TOKENS_FILE)';
  const hosts = [
    { variable: SETTINGS.grpcHost.variable, value: grpcHost },
    { variable: SETTINGS.opsHost.variable, value: opsHost },
  ];
  return hosts.flatMap(({ variable, value }) =>
    value === undefined || isLoopback(value) ? [] : [{ variable, value, expected }],
  );
}

function tokensFileFaults({ authMode, authTokensFile }: Partial<Config>): readonly SettingFault[] {
  const { variable } = SETTINGS.authTokensFile;
  if (authMode === 'tokens' && authTokensFile === undefined) {
    return [{ variable, expected: 'the path of a JSON file, since AUTH_MODE is tokens' }];
  }
  if (authMode === 'none' && authTokensFile !== undefined) {
    return [{ variable, value: authTokensFile, expected: 'nothing, since AUTH_MODE is none; or set AUTH_MODE=tokens' }];
  }
  return [];
}

/** Port 0 is another one each time. */
function samePortFaults({ grpcPort, opsPort }: Partial<Config>): readonly SettingFault[] {
  if (opsPort === undefined || opsPort === 0 || opsPort !== grpcPort) return [];
  const { variable } = SETTINGS.opsPort;
  return [{ variable, value: String(opsPort), expected: 'another port than that of GRPC_PORT' }];
}
