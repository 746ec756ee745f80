import { isIP } from 'node:net';
import { FAULTS_EXPECTED, MOST_DECLINES, readFaults } from './card-network/faults';
import { isClientVersion, MOST_CLIENT_VERSIONS } from './idempotency/index';
import { portExpected, readPort } from './port';

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

/** How callers are told apart: not at all, or by bearer tokens. */
export const AUTH_MODES = ['none', 'tokens'] as const;

/** One of `AUTH_MODES`. */
export type AuthMode = (typeof AUTH_MODES)[number];

/** What a start does about migrations: apply them, refuse while one is missing, or leave them to somebody else. */
export const MIGRATE_MODES = ['run', 'check', 'never'] as const;

/** One of `MIGRATE_MODES`. */
export type MigrateMode = (typeof MIGRATE_MODES)[number];

/** Every setting there is, by its name in `Config`; reading, help and documentation all go by this table. */
export const SETTINGS = {
  grpcHost: setting({
    variable: 'GRPC_HOST',
    defaultValue: '127.0.0.1',
    description: 'address that serves gRPC; off loopback only with `AUTH_MODE=tokens`',
    parse: address,
  }),
  grpcPort: setting({
    variable: 'GRPC_PORT',
    defaultValue: 50051,
    description: 'port that serves gRPC; 0 takes any free one',
    parse: port,
  }),
  opsHost: setting({
    variable: 'OPS_HOST',
    defaultValue: '127.0.0.1',
    description: 'address that serves metrics and probes, without keys or accounts; off loopback likewise',
    parse: address,
  }),
  opsPort: setting({
    variable: 'OPS_PORT',
    defaultValue: 9464,
    description: 'port that serves metrics and probes; 0 takes any free one',
    parse: port,
  }),
  authMode: setting<AuthMode>({
    variable: 'AUTH_MODE',
    defaultValue: 'none',
    description: 'who calls: `none`, everybody is the account `local`, or `tokens`, bearer tokens of a file',
    parse: oneOf(AUTH_MODES),
  }),
  authTokensFile: setting<string | undefined>({
    variable: 'AUTH_TOKENS_FILE',
    defaultValue: undefined,
    description: 'JSON file of tokens and their accounts, read once at the start; needed with `AUTH_MODE=tokens`',
    parse: anyText,
  }),
  databaseUrl: setting<string | undefined>({
    variable: 'DATABASE_URL',
    defaultValue: undefined,
    description: 'Postgres to use instead of the embedded one',
    secret: true,
    parse: postgresUrl,
  }),
  cardNetworkAddress: setting<string | undefined>({
    variable: 'CARD_NETWORK_ADDRESS',
    defaultValue: undefined,
    description: 'card network (`cardnetwork.v1`) to use instead of a simulator in a process of its own',
    parse: target,
  }),
  cardNetworkPort: setting({
    variable: 'CARD_NETWORK_PORT',
    defaultValue: 0,
    description: 'port of the simulated card network, on 127.0.0.1; 0 takes any free one',
    parse: port,
  }),
  cardNetworkFaults: setting<string | undefined>({
    variable: 'CARD_NETWORK_FAULTS',
    defaultValue: undefined,
    description:
      'what goes wrong at the simulated card network, one entry per call, such as `ok*3,lost_answer,delay:500*`',
    parse: faultScript,
  }),
  cardNetworkDeclines: setting({
    variable: 'CARD_NETWORK_DECLINES',
    defaultValue: 0,
    description: 'how many cards the simulated card network declines before the first that it charges',
    parse: wholeNumber(0, MOST_DECLINES),
  }),
  reconcileIntervalMs: setting({
    variable: 'RECONCILE_INTERVAL_MS',
    defaultValue: 0,
    description:
      'how often payments are compared with the charges of the card network, milliseconds; 0 is never. It only looks: ' +
      '`npx grpc-idempotency reconcile --repair` repairs',
    parse: wholeNumber(0, 2_147_483_647),
  }),
  resumeIntervalMs: setting({
    variable: 'RESUME_INTERVAL_MS',
    defaultValue: 5_000,
    description:
      'how often half-finished payments and refunds are looked for whose callers do not come back, to be finished, ' +
      'milliseconds; 0 is never',
    parse: wholeNumber(0, 2_147_483_647),
  }),
  receiptsAddress: setting<string | undefined>({
    variable: 'RECEIPTS_ADDRESS',
    defaultValue: undefined,
    description: 'receipts service (`receipts.v1`) to send to instead of a simulator in a process of its own',
    parse: target,
  }),
  receiptsPort: setting({
    variable: 'RECEIPTS_PORT',
    defaultValue: 0,
    description: 'port of the simulated receipts service, on 127.0.0.1; 0 takes any free one',
    parse: port,
  }),
  clientVersions: setting<readonly string[] | undefined>({
    variable: 'CLIENT_VERSIONS',
    defaultValue: undefined,
    description:
      'clients that `idempotency_mismatches_total` tells apart, as their `user-agent` begins: `shop/1.4.2,shop/1.4.3`',
    parse: clientVersions,
  }),
  dataDirectory: setting({
    variable: 'DATA_DIRECTORY',
    defaultValue: '.data',
    description: 'where the embedded Postgres keeps its data',
    parse: anyText,
  }),
  migrate: setting<MigrateMode>({
    variable: 'MIGRATE',
    defaultValue: 'run',
    description:
      'migrations at the start: `run` applies them, `check` refuses while one is missing, `never` does not look',
    parse: oneOf(MIGRATE_MODES),
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
    description: `least severe line that is logged: ${list(LOG_LEVELS)}`,
    parse: oneOf(LOG_LEVELS),
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

function port(text: string): Parsed<number> {
  const value = readPort(text);
  return value === undefined ? { kind: 'fault', expected: portExpected(text) } : { kind: 'value', value };
}

function anyText(text: string): Parsed<string> {
  return { kind: 'value', value: text };
}

/** Of a name only its form is looked at. */
function address(text: string): Parsed<string> {
  if (isIP(text) !== 0 || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(text)) return { kind: 'value', value: text };
  return { kind: 'fault', expected: 'an IP address or the name of a host' };
}

/** Of a name only its form is looked at. */
function target(text: string): Parsed<string> {
  const [, host = '', port = ''] = /^(.+):(\d{1,5})$/.exec(text) ?? [];
  const isHost = address(host.replace(/^\[(.*)\]$/, '$1')).kind === 'value';
  if (isHost && Number(port) > 0 && Number(port) <= 65_535) return { kind: 'value', value: text };
  return { kind: 'fault', expected: 'an address with its port, such as 127.0.0.1:50061' };
}

/** Whoever starts the simulator hands the script on as it is. */
function faultScript(text: string): Parsed<string> {
  if (readFaults(text) !== undefined) return { kind: 'value', value: text };
  return { kind: 'fault', expected: FAULTS_EXPECTED };
}

function clientVersions(text: string): Parsed<readonly string[]> {
  const value = text.split(',').map((version) => version.trim());
  if (value.length <= MOST_CLIENT_VERSIONS && value.every(isClientVersion)) return { kind: 'value', value };
  return { kind: 'fault', expected: `at most ${MOST_CLIENT_VERSIONS} words such as shop/1.4.2, with commas between` };
}

function postgresUrl(text: string): Parsed<string> {
  if (URL.canParse(text) && ['postgres:', 'postgresql:'].includes(new URL(text).protocol)) {
    return { kind: 'value', value: text };
  }
  return { kind: 'fault', expected: 'a URL such as postgresql://user:password@127.0.0.1:5432/database' };
}

function oneOf<Value extends string>(known: readonly Value[]): (text: string) => Parsed<Value> {
  return (text) => {
    const value = known.find((candidate) => candidate === text);
    if (value !== undefined) return { kind: 'value', value };
    return { kind: 'fault', expected: `one of ${known.join(', ')}` };
  };
}

function list(values: readonly string[]): string {
  return values.map((value) => `\`${value}\``).join(', ');
}
