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
    databaseUrl: undefined,
    dataDirectory: '.data',
    businessPoolSize: 10,
    storePoolSize: 4,
    shutdownGraceMs: 30_000,
    logLevel: 'info',
  });
});

test('every variable is read', () => {
  const environment = {
    GRPC_HOST: '::1',
    GRPC_PORT: '0',
    OPS_HOST: 'localhost',
    OPS_PORT: '65535',
    DATABASE_URL: 'postgres://app:hunter2@127.0.0.1:5432/payments',
    DATA_DIRECTORY: '/var/lib/payments',
    BUSINESS_POOL_SIZE: '20',
    STORE_POOL_SIZE: '8',
    SHUTDOWN_GRACE_MS: '5000',
    LOG_LEVEL: 'debug',
  };
  expect(readConfig(environment)).toEqual({
    grpcHost: '::1',
    grpcPort: 0,
    opsHost: 'localhost',
    opsPort: 65_535,
    databaseUrl: 'postgres://app:hunter2@127.0.0.1:5432/payments',
    dataDirectory: '/var/lib/payments',
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

test.each(['GRPC_HOST', 'OPS_HOST'])('%s is on loopback or refused', (variable) => {
  for (const host of ['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example.com', '127.1', 'payments.example.com', ' ']) {
    expect(faultOf(variable, host)?.expected).toContain(
      'identity is not configured; the service only listens on loopback',
    );
  }
  for (const host of ['127.0.0.1', '127.8.8.8', '::1', 'localhost']) expect(faultOf(variable, host)).toBeUndefined();
});

test.each(['65536', '-1', '80.5', '1e3', '0x10', ' 80', '٣'])('the port %j is refused', (port) => {
  expect(faultOf('GRPC_PORT', port)?.expected).toBe('a whole number from 0 to 65535');
});
