import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { AtBoundary, Boundary } from './boundary-proxy';
import { startBoundaryProxy } from './boundary-proxy';

/** What a process under test is: the payments service, a relay of its outbox, or the receipts service. */
export type VictimRole =
  | { readonly role: 'payments'; readonly networkAddress: string }
  | { readonly role: 'relay'; readonly receiptsAddress: string; readonly networkAddress: string }
  | { readonly role: 'receipts' };

/** What it is started with; sent to it as JSON. */
export type VictimOptions = VictimRole & { readonly connectionString: string };

/** Messages of the process to the test. */
export type FromVictim =
  | { readonly type: 'ready'; readonly port: number }
  /** It stands at a call to another service until it is told to go. */
  | ({ readonly type: 'boundary'; readonly id: number } & Boundary)
  | { readonly type: 'round_ended'; readonly id: number };

/** Messages of the test to the process. */
export type ToVictim =
  | { readonly type: 'go'; readonly id: number }
  /** Lets a relay take one event and deliver it. */
  | { readonly type: 'round'; readonly id: number };

/** A process that is watched at every boundary, and killed. */
export interface Victim {
  /** Where it serves; 0 for a relay. */
  readonly port: number;
  /**
   * Runs work and lets all of it go; the boundaries that it has, in the order of time.
   *
   * @param work begins what the process does and resolves when it is done
   */
  record(work: () => Promise<unknown>): Promise<readonly Boundary[]>;
  /** Begins work and holds it at one of its boundaries, from 0 on; resolves with that one once it is held. */
  holdAt(index: number, work: () => Promise<unknown>): Promise<Boundary>;
  /** Lets a relay take one event and deliver it; resolves when it has. */
  round(): Promise<void>;
  /** Ends the process without a chance to clean up. */
  kill(): Promise<void>;
}

/** Starts one, with all of its statements and calls under watch; resolves when it is ready. */
export async function startVictim(role: VictimRole, databaseUrl: string): Promise<Victim> {
  let atBoundary: AtBoundary = () => 'go';
  const proxy = await startBoundaryProxy(databaseUrl, (boundary) => atBoundary(boundary));
  const options: VictimOptions = { ...role, connectionString: proxy.connectionString };
  const child = fork(join(__dirname, 'victim-main.ts'), [JSON.stringify(options)], {
    execArgv: ['--import', 'tsx'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  const rounds: (() => void)[] = [];
  const tell = (message: ToVictim): void => void child.send(message);
  const port = await new Promise<number>((resolve, reject) => {
    void exited.then(() => reject(new Error('the process ended before it was ready')));
    child.on('message', (message: FromVictim) => {
      if (message.type === 'ready') resolve(message.port);
      else if (message.type === 'round_ended') rounds[message.id]?.();
      else if (atBoundary(message) === 'go') tell({ type: 'go', id: message.id });
    });
  });
  return {
    port,
    record: async (work) => {
      const boundaries: Boundary[] = [];
      atBoundary = ({ name, point }) => {
        boundaries.push({ name, point });
        return 'go';
      };
      await work();
      atBoundary = () => 'go';
      return boundaries;
    },
    holdAt: (index, work) =>
      new Promise((resolve, reject) => {
        let passed = 0;
        atBoundary = ({ name, point }) => {
          passed += 1;
          if (passed <= index) return 'go';
          // What was held before stays so; what comes now is of nobody.
          atBoundary = () => 'go';
          resolve({ name, point });
          return 'hold';
        };
        const ended = () => reject(new Error(`it ended after ${passed} boundaries, before number ${index}`));
        work().then(ended, ended);
      }),
    round: () => new Promise((resolve) => tell({ type: 'round', id: rounds.push(resolve) - 1 })),
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
      proxy.close();
    },
  };
}

/** A request that stands at a boundary. */
export interface Held<Request> {
  readonly request: Request;
  /** Which of its boundaries, from 1. */
  readonly number: number;
  readonly boundary: Boundary;
}

/**
 * Statements that are not waited for without end: the process would find out what became of them after some seconds, and
 * go on. Claims are among them, of which few are out at once.
 */
const IMPATIENT = /COMMIT|idempotency_record/;

/**
 * Holds one request at every boundary, each in its turn, those last that can't stand for long. In the order of the
 * boundaries.
 *
 * @param boundaries what `record` saw
 * @param next makes a request
 * @param begin sends it, and resolves when it has ended
 */
export async function holdAtEvery<Request>(
  victim: Pick<Victim, 'holdAt'>,
  boundaries: readonly Boundary[],
  next: () => Promise<Request>,
  begin: (request: Request) => Promise<unknown>,
): Promise<readonly Held<Request>[]> {
  const numbers = [...boundaries.keys()].reverse();
  const isImpatient = (number: number): boolean => IMPATIENT.test(boundaries[number]?.name ?? '');
  const inTurn = [...numbers.filter((number) => !isImpatient(number)), ...numbers.filter(isImpatient)];
  const held: Held<Request>[] = [];
  for (const number of inTurn) {
    const request = await next();
    const boundary = await victim.holdAt(number, () => begin(request));
    held.push({ request, number: number + 1, boundary });
  }
  return held.sort((one, other) => one.number - other.number);
}
