/**
 * Measures what protection costs, as ratios inside one run: `npm run bench -- [--quick] [--json] [--only NAME]`. What the
 * columns mean is in README.md beside this file.
 */
import { parseArgs } from 'node:util';
import { newRequestId } from '../src/idempotency/index';
import { openBenchDatabase } from './database';
import { type Call, firstExecution, replays, safeRead } from './load';
import { compare, type Result, warmUp } from './measure';
import type { Variant } from './messages';
import { type CallKind, COMPARISONS, FULL, QUICK } from './plan';
import { type ServerProcess, startServerProcess } from './server-process';
import { heading, row } from './table';

const VARIANTS: readonly Variant[] = ['unprotected', 'unprotected, same adapter', 'protected', 'protected, any client'];
/** More replays than connections, so that they are not one row that all ask for. */
const REPLAYED = 500;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { quick: { type: 'boolean' }, json: { type: 'boolean' }, only: { type: 'string' } },
  });
  const say = values.json === true ? () => undefined : (line: string) => console.log(line);
  const only = values.only;
  const comparisons = COMPARISONS.filter(({ name, parallel }) => `${name} ${String(parallel)}`.includes(only ?? ''));
  const database = await openBenchDatabase();
  const servers = new Map<Variant, ServerProcess>();
  const { connectionString } = database;
  let ending: Promise<void> | undefined;
  const end = (): Promise<void> =>
    (ending ??= Promise.all([...servers.values()].map((server) => server.stop())).then(() => database.close()));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void end().finally(() => process.exit(130)));
  }
  try {
    for (const variant of VARIANTS) servers.set(variant, await startServerProcess({ connectionString, variant }));
    const done = counting();
    const calls = await callsOf(servers.get('protected') as ServerProcess, done, database.rows);
    const bench = { servers, call: calls, extent: values.quick === true ? QUICK : FULL };
    say('warming up');
    await warmUp(bench);
    heading().forEach(say);
    const results: Result[] = [];
    for (const comparison of comparisons) {
      for (const result of await compare(bench, comparison)) {
        say(row(result));
        results.push(result);
      }
    }
    await checkBooks(database.rows, done);
    say(`${String(done.small + done.real)} first executions, one effect each`);
    if (values.json === true) console.log(JSON.stringify({ extent: bench.extent, results }, null, 2));
  } finally {
    await end();
  }
}

interface Done {
  small: number;
  real: number;
}

function counting(): Done {
  return { small: 0, real: 0 };
}

type Rows = <Row>(sql: string) => Promise<readonly Row[]>;

/** The calls of all kinds; first executions are counted. */
async function callsOf(server: ServerProcess, done: Done, rows: Rows): Promise<(kind: CallKind) => Call> {
  const [payment] = await rows<{ id: string }>(
    `INSERT INTO payments (payment_id, scope, order_id, amount_minor, currency, payment_method, state,
       authorization_id, etag)
     VALUES (gen_random_uuid(), 'account-1', '${newRequestId()}', 9, 'EUR', 'tok', 'authorized', 'a', gen_random_uuid())
     RETURNING payment_id AS id`,
  );
  done.real += 1;
  const replay = await replays(server.client, REPLAYED);
  done.small += REPLAYED;
  const first = { small: firstExecution('small'), real: firstExecution('real') };
  return (kind) => {
    switch (kind.kind) {
      case 'first':
        return async (client) => {
          await first[kind.work](client);
          done[kind.work] += 1;
        };
      case 'replay':
        return replay;
      case 'read':
        return safeRead(payment?.id ?? '');
      case 'empty':
        return safeRead('');
    }
  };
}

/** A protection that is fast because it lost something is none. */
async function checkBooks(rows: Rows, done: Done): Promise<void> {
  const [counts] = await rows<Done>(
    'SELECT (SELECT count(*)::int FROM bench_small) AS small, (SELECT count(*)::int FROM payments) AS real',
  );
  if (counts?.small !== done.small || counts.real !== done.real) {
    throw new Error(`the books don't agree: counted ${JSON.stringify(done)}, found ${JSON.stringify(counts)}`);
  }
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
