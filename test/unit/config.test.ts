import { ConfigError, readConfig, SETTINGS } from '../../src/config';

/** The fault that one variable causes, or undefined. */
function faultOf(variable: string, value: string) {
  try {
    readConfig({ [variable]: value });
  } catch (error) {
    if (error instanceof ConfigError) return error.faults[0];
    throw error;
  }
  return undefined;
}

test('an empty environment gives the documented defaults', () => {
  expect(readConfig({})).toEqual({
    grpcHost: '127.0.0.1',
    grpcPort: 50051,
    opsHost: '127.0.0.1',
    opsPort: 9464,
    authMode: 'none',
    authTokensFile: undefined,
    databaseUrl: undefined,
    cardNetworkPort: 0,
    cardNetworkFaults: undefined,
    cardNetworkDeclines: 0,
    receiptsPort: 0,
    dataDirectory: '.data',
    migrate: 'run',
    businessPoolSize: 10,
    storePoolSize: 4,
    reconcileIntervalMs: 0,
    resumeIntervalMs: 5_000,
    shutdownGraceMs: 30_000,
    logLevel: 'info',
  });
});

test('every variable is read', () => {
  const environment = {
    GRPC_HOST: '10.0.0.1',
    GRPC_PORT: '0',
    OPS_HOST: 'payments.example.com',
    OPS_PORT: '65535',
    AUTH_MODE: 'tokens',
    AUTH_TOKENS_FILE: '/etc/payments/accounts.json',
    DATABASE_URL: 'postgres://app:hunter2@127.0.0.1:5432/payments',
    CARD_NETWORK_ADDRESS: 'cards.example.com:443',
    CARD_NETWORK_PORT: '50061',
    CARD_NETWORK_FAULTS: 'ok,lost_answer*3',
    CARD_NETWORK_DECLINES: '2',
    RECONCILE_INTERVAL_MS: '60000',
    RESUME_INTERVAL_MS: '1000',
    RECEIPTS_ADDRESS: '[::1]:50053',
    RECEIPTS_PORT: '50053',
    CLIENT_VERSIONS: 'shop/1.4.2, shop/1.4.3',
    DATA_DIRECTORY: '/var/lib/payments',
    MIGRATE: 'check',
    BUSINESS_POOL_SIZE: '20',
    STORE_POOL_SIZE: '8',
    SHUTDOWN_GRACE_MS: '5000',
    LOG_LEVEL: 'debug',
  };
  expect(readConfig(environment)).toEqual({
    grpcHost: '10.0.0.1',
    grpcPort: 0,
    opsHost: 'payments.example.com',
    opsPort: 65_535,
    authMode: 'tokens',
    authTokensFile: '/etc/payments/accounts.json',
    databaseUrl: 'postgres://app:hunter2@127.0.0.1:5432/payments',
    cardNetworkAddress: 'cards.example.com:443',
    cardNetworkPort: 50_061,
    cardNetworkFaults: 'ok,lost_answer*3',
    cardNetworkDeclines: 2,
    reconcileIntervalMs: 60_000,
    resumeIntervalMs: 1_000,
    receiptsAddress: '[::1]:50053',
    receiptsPort: 50_053,
    clientVersions: ['shop/1.4.2', 'shop/1.4.3'],
    dataDirectory: '/var/lib/payments',
    migrate: 'check',
    businessPoolSize: 20,
    storePoolSize: 8,
    shutdownGraceMs: 5_000,
    logLevel: 'debug',
  });
  expect(Object.values(SETTINGS).map(({ variable }) => variable)).toEqual(Object.keys(environment));
});

test('an empty variable counts as unset', () => {
  expect(readConfig({ GRPC_PORT: '', DATABASE_URL: '', LOG_LEVEL: '' })).toEqual(readConfig({}));
});

test('the settings cannot be changed afterwards', () => {
  expect(Object.isFrozen(readConfig({}))).toBe(true);
});

test('all faults are told at once, each with its variable, its value and what was expected', () => {
  const read = () => readConfig({ GRPC_PORT: 'http', STORE_POOL_SIZE: '0', LOG_LEVEL: 'loud', OPS_PORT: '9000' });
  expect(read).toThrow(ConfigError);
  expect(read).toThrow(
    [
      'settings that cannot be used:',
      '  GRPC_PORT is "http": expected a whole number from 0 to 65535',
      '  STORE_POOL_SIZE is "0": expected a whole number from 1 to 1000',
      '  LOG_LEVEL is "loud": expected one of trace, debug, info, warn, error, fatal, silent',
    ].join('\n'),
  );
});

test.each(['mysql://app:hunter2@127.0.0.1/payments', 'hunter2'])('the database URL %s is refused unprinted', (url) => {
  expect(faultOf('DATABASE_URL', url)).toEqual({
    variable: 'DATABASE_URL',
    expected: 'a URL such as postgresql://user:password@127.0.0.1:5432/database',
  });
  expect(() => readConfig({ DATABASE_URL: url })).not.toThrow(/hunter2/);
});

test.each(['postgres://127.0.0.1/payments', 'postgresql://127.0.0.1/payments'])(
  'the database URL %s is fine',
  (url) => {
    expect(readConfig({ DATABASE_URL: url }).databaseUrl).toBe(url);
  },
);

describe.each(['GRPC_HOST', 'OPS_HOST'])('%s', (variable) => {
  const tokens = { AUTH_MODE: 'tokens', AUTH_TOKENS_FILE: 'accounts.json' };

  it('is on loopback or refused, saying why and what would allow it', () => {
    for (const host of ['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example.com', '127.1', 'payments.example.com']) {
      expect(faultOf(variable, host)).toEqual({
        variable,
        value: host,
        expected:
          '127.0.0.1, ::1 or localhost (identity is not configured, and without it only this machine may call: set ' +
          'AUTH_MODE=tokens and AUTH_TOKENS_FILE)',
      });
    }
    for (const host of ['127.0.0.1', '127.8.8.8', '::1', 'localhost']) expect(faultOf(variable, host)).toBeUndefined();
  });

  it('is any address where callers have tokens, but an address it has to be', () => {
    for (const host of ['0.0.0.0', '::', '10.0.0.1', 'payments.example.com']) {
      expect(() => readConfig({ ...tokens, [variable]: host })).not.toThrow();
    }
    for (const host of [' ', '10.0.0.1 ', 'http://10.0.0.1', '10.0.0.1:50051', '-', '[::]']) {
      expect(() => readConfig({ ...tokens, [variable]: host })).toThrow('expected an IP address or the name of a host');
    }
  });
});

test('tokens need a file, and a file is no use without tokens', () => {
  expect(faultOf('AUTH_MODE', 'tokens')).toEqual({
    variable: 'AUTH_TOKENS_FILE',
    expected: 'the path of a JSON file, since AUTH_MODE is tokens',
  });
  expect(faultOf('AUTH_TOKENS_FILE', 'accounts.json')).toEqual({
    variable: 'AUTH_TOKENS_FILE',
    value: 'accounts.json',
    expected: 'nothing, since AUTH_MODE is none; or set AUTH_MODE=tokens',
  });
});

test('contradictions are told with the other faults, in the order of the table; what could not be read has none', () => {
  const faults = (environment: NodeJS.ProcessEnv): unknown => {
    try {
      return readConfig(environment);
    } catch (error) {
      return error instanceof ConfigError ? error.faults.map(({ variable }) => variable) : error;
    }
  };
  expect(faults({ LOG_LEVEL: 'loud', OPS_HOST: '::', GRPC_PORT: 'http', GRPC_HOST: '::' })).toEqual([
    'GRPC_HOST',
    'GRPC_PORT',
    'OPS_HOST',
    'LOG_LEVEL',
  ]);
  expect(faults({ AUTH_MODE: 'token', GRPC_HOST: '::', AUTH_TOKENS_FILE: 'accounts.json' })).toEqual(['AUTH_MODE']);
  expect(faults({ GRPC_HOST: ' ' })).toEqual(['GRPC_HOST']);
});

test('one port serves one thing, except 0, which is another one each time', () => {
  expect(() => readConfig({ GRPC_PORT: '8080', OPS_PORT: '8080' })).toThrow(
    'OPS_PORT is "8080": expected another port than that of GRPC_PORT',
  );
  expect(faultOf('GRPC_PORT', '9464')?.variable).toBe('OPS_PORT');
  expect(() => readConfig({ GRPC_PORT: '0', OPS_PORT: '0' })).not.toThrow();
  // What could not be read is not the same as anything.
  expect(() => readConfig({ GRPC_PORT: 'http', OPS_PORT: 'http' })).not.toThrow('another port');
});

test('what simulators are to do is read with all else, before any of them is started', () => {
  const environment = {
    GRPC_PORT: 'http',
    CARD_NETWORK_PORT: '70000',
    CARD_NETWORK_FAULTS: 'lost_anser*3',
    CARD_NETWORK_DECLINES: '-1',
    RECEIPTS_PORT: 'x',
  };
  expect(() => readConfig(environment)).toThrow(
    new RegExp(
      [
        '^settings that cannot be used:',
        '  GRPC_PORT is "http": .*',
        '  CARD_NETWORK_PORT is "70000": expected a whole number from 0 to 65535',
        '  CARD_NETWORK_FAULTS is "lost_anser\\*3": expected a list such as .*lost_answer.*',
        '  CARD_NETWORK_DECLINES is "-1": expected a whole number from 0 to 1000000',
        '  RECEIPTS_PORT is "x": expected a whole number from 0 to 65535$',
      ].join('\\n'),
    ),
  );
});

test.each(['MIGRATE', 'AUTH_MODE'])('%s is one of its words', (variable) => {
  expect(faultOf(variable, 'yes')?.expected).toMatch(/^one of \w+, \w+/);
});

test.each(['65536', '-1', '80.5', '1e3', '0x10', ' 80', '٣'])('the port %j is refused', (port) => {
  expect(faultOf('GRPC_PORT', port)?.expected).toBe('a whole number from 0 to 65535');
});
