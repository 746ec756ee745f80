import { connect } from '../src/database/connect';
import { openDemoDatabase } from './demo-database';
import { type Attempt, type Intent, payOnce } from './demo-payment';
import { tableHeader, tableRow } from './demo-table';
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
    const sent = new Map<string, number>();
    const attempt = async (intent: Intent, process: DemoProcess): Promise<Attempt> => {
      const number = (sent.get(intent.requestId) ?? 0) + 1;
      sent.set(intent.requestId, number);
      const ended = await payOnce(process.client, intent);
      const payments = await connections.business.payment.count({ where: { orderId: intent.orderId } });
      print(tableRow({ intent, number, process: process.label, outcome: ended.outcome, payments }));
      return ended;
    };
    print(tableHeader());
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
