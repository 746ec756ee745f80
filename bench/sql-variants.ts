/**
 * Compares ways to write the statements of the hot path by what they cost Postgres alone: `tsx bench/sql-variants.ts`. One
 * connection runs each text by itself, as a prepared statement; the cost is the processor time of its backend, which the
 * load of the machine moves less than the time on the clock. Linux only.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Client } from 'pg';
import { createDays, newRequestId } from '../src/idempotency/index';
import { connect } from '../src/database/connect';
import { COMPLETE_IF_HELD } from '../src/idempotency/store/sql/complete';
import { INSERT_CLAIM, INSERT_CLAIMS } from '../src/idempotency/store/sql/claim';
import { LOOK_UP } from '../src/idempotency/store/sql/look-up';
import { openBenchDatabase } from './database';
import { FENCES, SETTINGS_APART } from './sql-texts';

/** Statements per variant and round. */
const RUNS = 400;
const ROUNDS = 7;
const DAY_MS = 86_400_000;

interface Claimed {
  readonly id: string;
  readonly token: string;
}

/** A way to do the same thing. */
interface Variant {
  readonly name: string;
  readonly planMode: 'auto' | 'force_generic_plan';
  /** Runs before the clock starts, and gives the parameters of each run. */
  readonly prepare: (client: Client) => Promise<readonly (readonly unknown[])[]>;
  readonly texts: readonly { readonly text: string; readonly take: (values: readonly unknown[]) => unknown[] }[];
  readonly inTransaction: boolean;
}

const bucket = new Date().toISOString().slice(0, 10);
const fingerprint = randomBytes(65);
const response = randomBytes(150);

const claimValues = ({ id, token }: Claimed): unknown[] => [
  ...[bucket, id, Date.now(), DAY_MS, 30_000, 1, token, fingerprint, 'account-1', newRequestId(), 'host:1', null],
];
const newClaims = (): readonly Claimed[] =>
  Array.from({ length: RUNS }, () => ({ id: randomUUID(), token: randomUUID() }));
const all = (values: readonly unknown[]): unknown[] => [...values];
/** The fence has its idle limit, the eighth of the values, in the fourth place. */
const inItsOrder = (values: readonly unknown[]): unknown[] => [
  ...[...values.slice(0, 3), values[7]],
  ...[...values.slice(3, 7), ...values.slice(8)],
];

const claim = (name: string, planMode: Variant['planMode'], text: string): Variant => ({
  ...{ name, planMode, inTransaction: false, texts: [{ text, take: all }] },
  prepare: () => Promise.resolve(newClaims().map(claimValues)),
});

/** Sixteen claims in one statement; the cost is given per claim. */
const batch = (name: string, planMode: Variant['planMode']): Variant => ({
  ...{ name, planMode, inTransaction: false, texts: [{ text: INSERT_CLAIMS, take: all }] },
  prepare: () =>
    Promise.resolve(Array.from({ length: RUNS / 16 }, () => [JSON.stringify(newClaims().slice(0, 16).map(batchRow))])),
});

const batchRow = ({ id, token }: Claimed) => ({
  ...{ bucket, id, token, datedAtMs: Date.now(), maxKeyAgeMs: DAY_MS, leaseMs: 30_000, method: 1, scope: 'account-1' },
  ...{ fingerprint: fingerprint.toString('hex'), requestId: newRequestId(), instance: 'host:1' },
});

async function claimed(client: Client): Promise<readonly Claimed[]> {
  const claims = newClaims();
  for (const one of claims) await client.query({ name: 'prepare claim', text: INSERT_CLAIM, values: claimValues(one) });
  return claims;
}

const fence = (name: string, planMode: Variant['planMode'], texts: Variant['texts']): Variant => ({
  ...{ name, planMode, texts, inTransaction: true },
  prepare: async (client) =>
    (await claimed(client)).map(({ id, token }) => [
      ...[bucket, id, token, 0, null, response, null, '30000', null, true],
    ]),
});

const lookUp = (name: string, planMode: Variant['planMode']): Variant => ({
  ...{ name, planMode, inTransaction: false, texts: [{ text: LOOK_UP, take: all }] },
  prepare: async (client) => (await claimed(client)).map(({ id }) => [bucket, id, Date.now(), DAY_MS]),
});

const fences = FENCES(bucket).flatMap(({ name, text, parameters }) => {
  const take = (values: readonly unknown[]) => values.slice(0, parameters);
  return [
    fence(`fence: ${name}`, 'auto', [{ text, take }]),
    fence(`fence: ${name}, generic plan`, 'force_generic_plan', [{ text, take }]),
  ];
});

const VARIANTS: readonly Variant[] = [
  { ...claim('nothing but the transaction', 'auto', 'SELECT 1'), prepare: nothing, inTransaction: true },
  claim('claim', 'auto', INSERT_CLAIM),
  claim('claim, generic plan', 'force_generic_plan', INSERT_CLAIM),
  batch('claim, 16 in one', 'auto'),
  batch('claim, 16 in one, generic plan', 'force_generic_plan'),
  fence('fence: as it is', 'auto', [{ text: COMPLETE_IF_HELD, take: inItsOrder }]),
  fence('fence: as it is, generic plan', 'force_generic_plan', [{ text: COMPLETE_IF_HELD, take: inItsOrder }]),
  fence('fence: settings in a statement of their own', 'auto', SETTINGS_APART(bucket)),
  ...fences,
  lookUp('look-up', 'auto'),
  lookUp('look-up, generic plan', 'force_generic_plan'),
];

function nothing(): Promise<readonly (readonly unknown[])[]> {
  return Promise.resolve(Array.from({ length: RUNS }, () => []));
}

async function main(): Promise<void> {
  const database = await openBenchDatabase(false);
  const { connectionString } = database;
  const connections = connect({ connectionString });
  await createDays(connections.store);
  await connections.close();
  try {
    const costs = VARIANTS.map((): number[] => []);
    const clients: Client[] = [];
    for (const { planMode } of VARIANTS) clients.push(await open(connectionString, planMode));
    // Interleaved, so that a busy minute falls on all alike.
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [index, variant] of VARIANTS.entries()) {
        const cost = await measure(clients[index] as Client, variant).catch((error: unknown) => {
          throw new Error(variant.name, { cause: error });
        });
        if (round > 0) costs[index]?.push(cost);
      }
    }
    for (const client of clients) await client.end();
    for (const [index, { name }] of VARIANTS.entries()) {
      const sorted = (costs[index] ?? []).sort((a, b) => a - b);
      const [low = 0] = sorted;
      console.log(`${name.padEnd(64)} ${low.toFixed(0).padStart(5)} µs at best, median ${median(sorted).toFixed(0)}`);
    }
  } finally {
    await database.close();
  }
}

async function open(connectionString: string, planMode: Variant['planMode']): Promise<Client> {
  const options = `-c plan_cache_mode=${planMode} -c synchronous_commit=off`;
  const client = new Client({ connectionString, options });
  await client.connect();
  return client;
}

/** Processor time of the backend per claim, completion or look-up, microseconds; in a transaction, BEGIN and COMMIT included. */
async function measure(client: Client, { prepare, texts, inTransaction }: Variant): Promise<number> {
  const values = await prepare(client);
  const [backend] = (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows;
  const pid = backend?.pid ?? 0;
  const before = await cpuUs(pid);
  for (const parameters of values) {
    if (inTransaction) await client.query('BEGIN');
    for (const { text, take } of texts) await client.query({ name: nameOf(text), text, values: take(parameters) });
    if (inTransaction) await client.query('COMMIT');
  }
  return ((await cpuUs(pid)) - before) / RUNS;
}

const names = new Map<string, string>();

function nameOf(text: string): string {
  const name = names.get(text) ?? `s${String(names.size)}`;
  names.set(text, name);
  return name;
}

async function cpuUs(pid: number): Promise<number> {
  const [nanoseconds = '0'] = (await readFile(`/proc/${String(pid)}/schedstat`, 'utf8')).split(' ');
  return Number(nanoseconds) / 1_000;
}

function median(sorted: readonly number[]): number {
  return sorted[sorted.length >> 1] ?? 0;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
