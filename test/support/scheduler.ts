import type { Pool, PoolClient, QueryResult, QueryResultRow } from 'pg';
import type { Statement } from './scheduler-statements';

/** What an attempt does, one statement after the other; it decides by what each gave. A failed one is thrown into it. */
export type Program = Generator<Statement, string, QueryResult<QueryResultRow>>;

/** One order of the steps, and what came of it. */
export interface Schedule {
  /** Whose step came when: `ABBA`. A step that had to wait is where it was sent. */
  readonly order: string;
  /** How each program ended. */
  readonly outcomes: readonly string[];
}

/** What is explored. */
export interface Exploration {
  /** Connections beside those of the programs, for looking on. */
  readonly pool: Pool;
  /** One for each program. */
  readonly connections: readonly PoolClient[];
  /** Makes the programs of one run, on a state of their own. */
  readonly start: () => Promise<readonly Program[]>;
  /** Looks at the books after each run. */
  readonly check: (schedule: Schedule) => Promise<void>;
}

/**
 * Runs every order of the steps of several programs, each on its own connection, and says how many there were. Where a
 * statement waits for a lock, the others go on, and it is joined again when it gets it.
 */
export async function exploreSchedules(exploration: Exploration): Promise<number> {
  let choices: readonly number[] | undefined = [];
  let runs = 0;
  while (choices !== undefined) {
    const { schedule, taken } = await runSchedule(exploration, choices);
    runs += 1;
    await exploration.check(schedule);
    choices = nextChoices(taken);
  }
  return runs;
}

/** A choice that was made, and between how many. */
interface Taken {
  readonly choice: number;
  readonly among: number;
}

/** The last choice that has an alternative is made otherwise; what follows starts over. */
function nextChoices(taken: readonly Taken[]): readonly number[] | undefined {
  const last = taken.findLastIndex(({ choice, among }) => choice + 1 < among);
  if (last < 0) return undefined;
  return taken.slice(0, last + 1).map(({ choice }, index) => (index === last ? choice + 1 : choice));
}

interface Attempt {
  readonly name: string;
  readonly client: PoolClient;
  readonly pid: number;
  readonly program: Program;
  next: IteratorResult<Statement, string>;
  /** A statement that waits for a lock. */
  waiting: Promise<void> | undefined;
  isDone: () => boolean;
}

async function runSchedule(
  { pool, connections, start }: Exploration,
  choices: readonly number[],
): Promise<{ readonly schedule: Schedule; readonly taken: readonly Taken[] }> {
  const programs = await start();
  const attempts = programs.map((program, index): Attempt => {
    const client = connections[index];
    if (client === undefined) throw new Error('fewer connections than programs');
    const { processID } = client as PoolClient & { readonly processID: number };
    const name = String.fromCharCode('A'.charCodeAt(0) + index);
    return { name, client, pid: processID, program, next: program.next(), waiting: undefined, isDone: () => true };
  });
  const taken: Taken[] = [];
  let order = '';
  for (;;) {
    await join(pool, attempts);
    const ready = attempts.filter(({ next, waiting }) => next.done !== true && waiting === undefined);
    if (ready.length === 0) {
      const blocked = attempts.filter(({ waiting }) => waiting !== undefined);
      if (blocked.length === 0) break;
      // They wait for each other: Postgres ends one of them.
      await Promise.race(blocked.map(async ({ waiting }) => waiting));
      continue;
    }
    const choice = Math.min(choices[taken.length] ?? 0, ready.length - 1);
    taken.push({ choice, among: ready.length });
    const attempt = ready[choice] as Attempt;
    order += attempt.name;
    send(attempt);
    await settledOrBlocked(pool, attempt);
  }
  return { schedule: { order, outcomes: attempts.map(({ next }) => next.value as string) }, taken };
}

/** Sends the statement that an attempt is at, and what follows at once. */
function send(attempt: Attempt): void {
  let done = false;
  attempt.isDone = () => done;
  attempt.waiting = carryOut(attempt).then(() => {
    done = true;
    attempt.waiting = undefined;
  });
}

async function carryOut(attempt: Attempt): Promise<void> {
  let alone: true | undefined;
  do {
    const { text, values, ...statement } = attempt.next.value as Statement;
    alone = statement.alone;
    try {
      const result = await attempt.client.query<QueryResultRow>(text, [...values]);
      attempt.next = attempt.program.next(result);
    } catch (error) {
      attempt.next = attempt.program.throw(error);
    }
  } while (alone === true && attempt.next.done !== true);
}

/** Resolves when the statement has ended, or waits for a lock that another holds. */
async function settledOrBlocked(pool: Pool, attempt: Attempt): Promise<void> {
  const { waiting, pid } = attempt;
  if (waiting === undefined) return;
  const soon = new Promise((resolve) => setTimeout(resolve, 4));
  await Promise.race([waiting, soon]);
  while (!attempt.isDone()) {
    const { rows } = await pool.query<{ blocked: boolean }>('SELECT cardinality(pg_blocking_pids($1)) > 0 AS blocked', [
      pid,
    ]);
    if (rows[0]?.blocked === true) return;
  }
  await waiting;
}

/** Waits for those that were let go by the last step. */
async function join(pool: Pool, attempts: readonly Attempt[]): Promise<void> {
  for (const attempt of attempts) await settledOrBlocked(pool, attempt);
}
