import { isIPv4 } from 'node:net';

/** What became of a text from the environment. `expected` completes the sentence "expected …". */
export type Parsed<Value> =
  { readonly kind: 'value'; readonly value: Value } | { readonly kind: 'fault'; readonly expected: string };

/** One thing that can be set from outside. */
export interface Setting<Value> {
  /** The environment variable. */
  readonly variable: string;
  /** What holds while the variable is unset or empty. */
  readonly defaultValue: Value;
  /** One line for whoever runs the service. */
  readonly description: string;
  /** The value is never printed. */
  readonly secret?: true;
  readonly parse: (text: string) => Parsed<Value>;
}

/** What can be logged, from all to nothing. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** The least severe line that is written. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Every setting there is, by its name in `Config`; reading, help and documentation all go by this table. */
export const SETTINGS = {
  grpcHost: setting({
    variable: 'GRPC_HOST',
    defaultValue: '127.0.0.1',
    description: 'address that serves gRPC',
    parse: loopback,
  }),
  grpcPort: setting({
    variable: 'GRPC_PORT',
    defaultValue: 50051,
    description: 'port that serves gRPC; 0 takes any free one',
    parse: wholeNumber(0, 65_535),
  }),
  opsHost: setting({
    variable: 'OPS_HOST',
    defaultValue: '127.0.0.1',
    description: 'address that serves metrics and probes',
    parse: loopback,
  }),
  opsPort: setting({
    variable: 'OPS_PORT',
    defaultValue: 9464,
    description: 'port that serves metrics and probes; 0 takes any free one',
    parse: wholeNumber(0, 65_535),
  }),
  databaseUrl: setting<string | undefined>({
    variable: 'DATABASE_URL',
    defaultValue: undefined,
    description: 'Postgres to use instead of the embedded one',
    secret: true,
    parse: postgresUrl,
  }),
  dataDirectory: setting({
    variable: 'DATA_DIRECTORY',
    defaultValue: '.data',
    description: 'where the embedded Postgres keeps its data',
    parse: (text) => ({ kind: 'value', value: text }),
  }),
  businessPoolSize: setting({
    variable: 'BUSINESS_POOL_SIZE',
    defaultValue: 10,
    description: 'connections for handlers',
    parse: wholeNumber(1, 1_000),
  }),
  storePoolSize: setting({
    variable: 'STORE_POOL_SIZE',
    defaultValue: 4,
    description: 'connections for claims, look-ups and releases',
    parse: wholeNumber(1, 1_000),
  }),
  shutdownGraceMs: setting({
    variable: 'SHUTDOWN_GRACE_MS',
    defaultValue: 30_000,
    description: 'how long running calls may take to finish after SIGTERM, milliseconds',
    parse: wholeNumber(0, 3_600_000),
  }),
  logLevel: setting<LogLevel>({
    variable: 'LOG_LEVEL',
    defaultValue: 'info',
    description: `least severe line that is logged: ${LOG_LEVELS.join(', ')}`,
    parse: logLevel,
  }),
} as const;

/** Ties the type of the default to that of `parse`. */
function setting<Value>(definition: Setting<Value>): Setting<Value> {
  return definition;
}

function wholeNumber(least: number, most: number): (text: string) => Parsed<number> {
  return (text) => {
    // Number() alone would take '', '1e3', '0x10' and ' 7 ' for numbers.
    const value = /^\d+$/.test(text) ? Number(text) : NaN;
    if (value >= least && value <= most) return { kind: 'value', value };
    return { kind: 'fault', expected: `a whole number from ${least} to ${most}` };
  };
}

function loopback(text: string): Parsed<string> {
  if (text === 'localhost' || text === '::1' || (isIPv4(text) && text.startsWith('127.'))) {
    return { kind: 'value', value: text };
  }
  const why = 'identity is not configured; the service only listens on loopback';
  return { kind: 'fault', expected: `127.0.0.1, ::1 or localhost (${why})` };
}

function postgresUrl(text: string): Parsed<string> {
  if (URL.canParse(text) && ['postgres:', 'postgresql:'].includes(new URL(text).protocol)) {
    return { kind: 'value', value: text };
  }
  return { kind: 'fault', expected: 'a URL such as postgresql://user:password@127.0.0.1:5432/database' };
}

function logLevel(text: string): Parsed<LogLevel> {
  const level = LOG_LEVELS.find((known) => known === text);
  if (level !== undefined) return { kind: 'value', value: level };
  return { kind: 'fault', expected: `one of ${LOG_LEVELS.join(', ')}` };
}
