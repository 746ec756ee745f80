import { connect } from '../src/database/connect';
import { openDemoDatabase } from './demo-database';
import { type Attempt, type Intent, payOnce } from './demo-payment';
import { type DemoProcess, startDemoProcess } from './demo-process';

/** So that a takeover can be watched. In production it is longer than any handler takes. */
const LEASE_SECONDS = 2;

/** A shop with two processes of the payments service behind it, on one database. */
export interface Shop {
  readonly p1: DemoProcess;
  readonly p2: DemoProcess;
  /** Sends one attempt to one of the processes, without any retry, and prints a line about it. */
  attempt(intent: Intent, process: DemoProcess): Promise<Attempt>;
  /** How many payments there are, counted in the table. */
  countPayments(): Promise<number>;
  close(): Promise<void>;
}

/** Starts two services on free ports, with the database of DATABASE_URL or one that goes when the shop closes. */
export async function openShop(print: (line: string) => void): Promise<Shop> {
  /** What has been started, ended in the opposite order. */
  const opened: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const end of opened.splice(0).reverse()) await end();
  };
  try {
    const { connectionString, close: closeDatabase } = await openDemoDatabase(print);
    opened.push(closeDatabase);
    const start = async (name: string): Promise<DemoProcess> => {
      const started = await startDemoProcess(name, { connectionString, leaseSeconds: LEASE_SECONDS });
      opened.push(() => started.stop());
      return started;
    };
    const [p1, p2] = await allOrError([start('p1'), start('p2')]);
    const connections = connect({ connectionString });
    opened.push(() => connections.close());
    const countPayments = (): Promise<number> => connections.business.payment.count();
    const attempt = async (intent: Intent, process: DemoProcess): Promise<Attempt> => {
      const ended = await payOnce(process.client, intent);
      const time = new Date().toISOString().slice(11, 23);
      const columns = [time, `…${intent.requestId.slice(-7)}`, process.label.padEnd(10), ended.outcome.padEnd(19)];
      print(`${columns.join('  ')}  ${await countPayments()}`);
      return ended;
    };
    print('time          key       process     outcome              payments so far');
    return { p1, p2, attempt, countPayments, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Waits for both, also where one fails: what was started late has to be ended too. */
async function allOrError<Value>(
  starting: readonly [Promise<Value>, Promise<Value>],
): Promise<readonly [Value, Value]> {
  await Promise.allSettled(starting);
  return Promise.all(starting);
}
