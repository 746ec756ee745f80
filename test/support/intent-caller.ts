import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** What a caller process is started with; sent to it as JSON. */
export interface IntentCallerOptions {
  /** Of the caller's own database. */
  readonly connectionString: string;
  /** Most connections to it. Default 10. */
  readonly poolSize?: number;
  /** Where the payments service listens, for those who pay. */
  readonly grpcPort?: number;
  /** How much its clock goes ahead, milliseconds; behind where negative. Default 0. */
  readonly clockAheadMs?: number;
}

/** Messages of the process to the test. */
export type FromCaller =
  | { readonly type: 'ready' }
  | { readonly type: 'found'; readonly requestIds: readonly string[] }
  | { readonly type: 'paid'; readonly requestId: string; readonly replayed: boolean; readonly paymentId: string };

/** Messages of the test to the process. */
export type ToCaller =
  | { readonly type: 'find'; readonly draftId: string; readonly times: number }
  | { readonly type: 'pay'; readonly draftId: string };

/** A caller that keeps intents, in an operating system process of its own. It does one thing at a time. */
export interface IntentCaller {
  /** Makes or finds the key of a draft, so many times at once. */
  find(draftId: string, times: number): Promise<readonly string[]>;
  /** Pays a draft with its key; rejects when the process ends before it is paid. */
  pay(draftId: string): Promise<Extract<FromCaller, { type: 'paid' }>>;
  /** Ends the process without a chance to clean up. */
  kill(): Promise<void>;
}

/** Starts a caller; resolves when it is ready. */
export async function startIntentCaller(options: IntentCallerOptions): Promise<IntentCaller> {
  const child = fork(join(__dirname, 'intent-caller-main.ts'), [JSON.stringify(options)], {
    execArgv: [...wrongClock(options.clockAheadMs ?? 0), '--import', 'tsx'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  const next = <Type extends FromCaller['type']>(type: Type) =>
    new Promise<Extract<FromCaller, { type: Type }>>((resolve, reject) => {
      void exited.then(() => reject(new Error(`the caller ended before it was ${type}`)));
      child.once('message', (message: FromCaller) => resolve(message as Extract<FromCaller, { type: Type }>));
    });
  const ask = <Type extends FromCaller['type']>(message: ToCaller, type: Type) => {
    const answer = next(type);
    child.send(message);
    return answer;
  };
  await next('ready');
  return {
    find: async (draftId, times) => (await ask({ type: 'find', draftId, times }, 'found')).requestIds,
    pay: (draftId) => ask({ type: 'pay', draftId }, 'paid'),
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** Sets the clock before anything else is loaded, since some take hold of it then. */
function wrongClock(aheadMs: number): readonly string[] {
  if (aheadMs === 0) return [];
  const script = `
    const Right = Date;
    globalThis.Date = class extends Right {
      constructor(...parts) { parts.length === 0 ? super(Right.now() + ${aheadMs}) : super(...parts); }
      static now() { return Right.now() + ${aheadMs}; }
    };`;
  return ['--import', `data:text/javascript,${encodeURIComponent(script)}`];
}
