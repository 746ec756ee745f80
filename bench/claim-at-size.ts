/**
 * What a claim costs among many records, against the same among few (design 8.2: at most 1.15 times):
 * `tsx bench/claim-at-size.ts [--records N] [--against N] [--pairs N] [--calls N]`. Two databases of one server, one process,
 * each with a store of its own; claims of new keys and replays go to one and the other in turn. Prints the ratios of the time
 * of a call and of the processor time of its database, with their 95 % intervals, and what a record takes. Linux only.
 */
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { connect } from '../src/database/connect';
import { migrate } from '../src/database/migrate';
import { createDays, openPostgresStore } from '../src/idempotency/index';
import type { ClaimOutcome, ClaimRequest } from '../src/idempotency/store/store';
import { claimRequest, datedKey, policyOf } from '../test/support/claim-requests';
import { openBenchDatabase } from './database';
import { pairedRatio } from './ratio';
import { fillRecords, measureRecordSize, type RecordSize } from './records';

const DAY_MS = 86_400_000;
/** So many days hold the records; keys are taken for as long. */
const DAYS = 8;
const POLICY = policyOf('CreatePayment', { maxKeyAgeMs: DAYS * DAY_MS });
/** Answers that are asked for again, spread over the days. */
const REPLAYED = 200;

/** A call that is measured, and what must come of it. */
interface Kind {
  readonly name: string;
  readonly expected: ClaimOutcome['kind'];
  readonly request: (database: FilledDatabase, call: number) => ClaimRequest;
}

const KINDS: readonly Kind[] = [
  {
    ...{ name: 'claim of a new dated key', expected: 'granted' },
    request: () => claimRequest({ policy: POLICY, scope: 'bench', requestId: datedKey(Date.now()) }),
  },
  {
    ...{ name: 'claim of a new undated key', expected: 'granted' },
    request: () => claimRequest({ policy: POLICY, scope: 'bench' }),
  },
  {
    ...{ name: 'replay', expected: 'completed' },
    request: ({ recorded }, call) => recorded[call % recorded.length] as ClaimRequest,
  },
];

/** One side of each pair. */
interface FilledDatabase {
  readonly recorded: readonly ClaimRequest[];
  claim(request: ClaimRequest): Promise<ClaimOutcome>;
  /** Processor time that its backends have used so far, microseconds. */
  cpuUs(): Promise<number>;
  /** Removes what was claimed since, so that it stays as large as it is. */
  tidy(): Promise<void>;
  recordSize(): Promise<RecordSize>;
  close(): Promise<void>;
}

async function openFilled(serverUrl: string, name: string, records: number): Promise<FilledDatabase> {
  const url = new URL(serverUrl);
  const cluster = new Client({ connectionString: url.href });
  await cluster.connect();
  // What is measured is not to be met by a worker that tidies one of the two.
  await cluster.query('ALTER SYSTEM SET autovacuum = off');
  await cluster.query('SELECT pg_reload_conf()');
  await cluster.query(`CREATE DATABASE ${name} TEMPLATE template0`);
  await cluster.end();
  url.pathname = `/${name}`;
  const connectionString = url.href;
  await migrate({ connectionString });
  const connections = connect({ connectionString });
  const store = await openPostgresStore({
    ...{ business: connections.transactions, records: connections.store, policies: [POLICY] },
  });
  await createDays(connections.store);
  const client = new Client({ connectionString });
  await client.connect();
  const recorded = Array.from({ length: REPLAYED }, (_, index) =>
    claimRequest({
      policy: POLICY,
      requestId: datedKey(Date.now() - 60_000 - (index / REPLAYED) * (DAYS - 1) * DAY_MS),
    }),
  );
  for (const request of recorded) await store.claim(request);
  await client.query(
    `UPDATE idempotency_record SET state = 'completed', completed_at = now(), status_code = 0, response = '\\x0a'`,
  );
  await fillRecords(client, records - REPLAYED, DAYS - 1);
  const today = new Date().toISOString().slice(0, 10);
  return {
    recorded,
    claim: (request) => store.claim(request),
    cpuUs: async () => {
      const { rows } = await client.query<{ pid: number }>(
        'SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
      );
      const used = await Promise.all(rows.map(({ pid }) => cpuOf(pid)));
      return used.reduce((sum, each) => sum + each, 0);
    },
    tidy: async () => {
      await client.query(`DELETE FROM idempotency_record WHERE bucket IN ($1, '1970-01-01') AND scope = 'bench'`, [
        today,
      ]);
      await client.query('VACUUM idempotency_record');
    },
    recordSize: () => measureRecordSize(client, new Date(Date.now() - 2 * DAY_MS).toISOString().slice(0, 10)),
    close: async () => {
      await client.end();
      await connections.close();
    },
  };
}

async function cpuOf(pid: number): Promise<number> {
  const [nanoseconds = '0'] = (await readFile(`/proc/${String(pid)}/schedstat`, 'utf8')).split(' ');
  return Number(nanoseconds) / 1_000;
}

interface Slice {
  readonly callUs: number;
  readonly cpuUs: number;
}

async function measure(database: FilledDatabase, { name, expected, request }: Kind, calls: number): Promise<Slice> {
  const cpuBefore = await database.cpuUs();
  const startedAt = performance.now();
  for (let call = 0; call < calls; call += 1) {
    const { kind } = await database.claim(request(database, call));
    if (kind !== expected) throw new Error(`${name}: expected ${expected}, got ${kind}`);
  }
  const tookMs = performance.now() - startedAt;
  const cpuUs = (await database.cpuUs()) - cpuBefore;
  await database.tidy();
  return { callUs: (tookMs * 1_000) / calls, cpuUs: cpuUs / calls };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      records: { type: 'string', default: '1000000' },
      against: { type: 'string', default: '1000' },
      pairs: { type: 'string', default: '16' },
      calls: { type: 'string', default: '300' },
    },
  });
  const [records, against] = [Number(values.records), Number(values.against)];
  const [pairs, calls] = [Number(values.pairs), Number(values.calls)];
  const server = await openBenchDatabase();
  const opened: FilledDatabase[] = [];
  let ending: Promise<void> | undefined;
  const end = (): Promise<void> =>
    (ending ??= Promise.all(opened.map((each) => each.close())).then(() => server.close()));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void end().finally(() => process.exit(130)));
  }
  try {
    const many = await openFilled(server.connectionString, 'many', records);
    opened.push(many);
    const few = await openFilled(server.connectionString, 'few', against);
    opened.push(few);
    console.log(`${records.toLocaleString('en')} records against ${against.toLocaleString('en')}`);
    for (const kind of KINDS) console.log(await compare(kind, many, few, pairs, calls));
    const { heap, index } = await many.recordSize();
    console.log(
      `a record beyond its answer: ${(heap + index).toFixed(0)} bytes ` +
        `(heap ${heap.toFixed(0)}, indexes ${index.toFixed(0)}; every page filled)`,
    );
  } finally {
    await end();
  }
}

/** Both sides in turn, the next time in the opposite order; the first pair warms up and is left out. */
async function compare(
  kind: Kind,
  many: FilledDatabase,
  few: FilledDatabase,
  pairs: number,
  calls: number,
): Promise<string> {
  const slices: (readonly [Slice, Slice])[] = [];
  for (let pair = 0; pair <= pairs; pair += 1) {
    const manyFirst = pair % 2 === 0;
    const [first, second] = manyFirst ? [many, few] : [few, many];
    const [one, other] = [await measure(first, kind, calls), await measure(second, kind, calls)];
    if (pair > 0) slices.push(manyFirst ? [one, other] : [other, one]);
  }
  const ratioOf = (of: (slice: Slice) => number): string => {
    const { mean, low, high } = pairedRatio(slices.map(([measured, baseline]) => [of(measured), of(baseline)]));
    return `${mean.toFixed(2)} [${low.toFixed(2)}, ${high.toFixed(2)}]`;
  };
  const [time, cpu] = [ratioOf(({ callUs }) => callUs), ratioOf(({ cpuUs }) => cpuUs)];
  return `${kind.name.padEnd(28)}time of a call ${time.padEnd(20)}database CPU ${cpu}`;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
