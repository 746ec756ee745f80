/**
 * What the client interceptor costs a call that succeeds at once, as processor time of the client per call, against a
 * grpc-js client without it that sends the same message, key and deadline over a channel with the same options:
 * `node -r ./bench/swc-register.js bench/client-overhead.ts [--pairs N] [--parallel N]`.
 * Three clients take turns: a bare one, ours, and a second bare one, whose ratio to the first is the noise. Each is a process of
 * its own, as a program has one kind of client and its code is compiled for that one; so is the server, which answers from
 * memory. **Every pair has new processes**: two of the same client differ by several percent for as long as they live, which
 * an interval over turns of one process would not show. Their first turns are not counted, as the compiler is at work then.
 * **No collection is forced**: it would throw optimized code away, and each turn would measure the compiler. Prints the
 * ratios with their 95 % intervals.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { credentials, Metadata, Server, ServerCredentials } from '@grpc/grpc-js';
import { descriptorSet } from '../src/gen/descriptor-set';
import {
  CreatePaymentResponse,
  Payment,
  PaymentsServiceClient,
  PaymentsServiceService,
} from '../src/gen/proto/payments/v1/payments';
import { CHANNEL_OPTIONS, createClientInterceptor, loadPolicies, newRequestId } from '../src/idempotency/index';
import { pairedRatio, type Ratio } from './ratio';

const CALLS_PER_TURN = 1_000;
const ROUNDS_PER_PAIR = 10;
const WARM_UP_ROUNDS = 12;

const request = {
  ...{
    orderId: 'order-1',
    amountMinor: 1250n,
    currency: 'EUR',
    paymentMethod: 'tok_visa',
    metadata: { note: 'bench' },
  },
  clientSentAt: undefined,
};

function serve(): void {
  const payment = Payment.create({ paymentId: 'payment-1', orderId: 'order-1', amountMinor: 1250n, currency: 'EUR' });
  const response = CreatePaymentResponse.create({ payment });
  const { createPayment } = PaymentsServiceService;
  const server = new Server();
  server.addService({ createPayment }, { createPayment: (_: unknown, answer: Answer) => answer(null, response) });
  server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
    if (error !== null) throw error;
    process.send?.(port);
  });
  process.once('disconnect', () => process.exit(0));
}

type Answer = (error: null, response: CreatePaymentResponse) => void;

/** Processor time of this process per call, microseconds. */
async function measure(client: PaymentsServiceClient, parallel: number): Promise<number> {
  const before = process.cpuUsage();
  let begun = 0;
  const caller = async (): Promise<void> => {
    while (begun < CALLS_PER_TURN) {
      begun += 1;
      await pay(client);
    }
  };
  await Promise.all(Array.from({ length: parallel }, caller));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS_PER_TURN;
}

function pay(client: PaymentsServiceClient): Promise<void> {
  const metadata = new Metadata();
  metadata.set('request-id', newRequestId());
  return new Promise((resolve, reject) => {
    client.createPayment(request, metadata, { deadline: Date.now() + 10_000 }, (error) => {
      if (error === null) resolve();
      else reject(error);
    });
  });
}

/** A process with one client: it takes a turn whenever it is told to, and says what that took. */
function takeTurns(port: string, kind: string, parallel: number): void {
  const interceptor = createClientInterceptor({ policies: loadPolicies(descriptorSet) });
  const client = new PaymentsServiceClient(`127.0.0.1:${port}`, credentials.createInsecure(), {
    ...CHANNEL_OPTIONS,
    interceptors: kind === 'ours' ? [interceptor] : [],
  });
  process.on('message', () => void measure(client, parallel).then((spent) => process.send?.(spent)));
  process.once('disconnect', () => process.exit(0));
}

async function take(client: ChildProcess): Promise<number> {
  client.send('turn');
  const [spent] = (await once(client, 'message')) as [number];
  return spent;
}

/**
 * What each client spent on average in some rounds. All rounds have the same order: each turn follows one of another process,
 * and begins with caches as cold as the others find them.
 */
async function measureRounds(clients: readonly ChildProcess[], rounds: number): Promise<readonly number[]> {
  const spent = clients.map(() => 0);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, client] of clients.entries()) spent[index] = (spent[index] ?? NaN) + (await take(client));
  }
  return spent.map((sum) => sum / rounds);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { pairs: { type: 'string', default: '20' }, parallel: { type: 'string', default: '16' } },
  });
  const start = (...role: string[]): ChildProcess => fork(__filename, role, { execArgv: process.execArgv });
  const server = start('serve');
  const [port] = (await once(server, 'message')) as [number];
  const ours: (readonly [number, number])[] = [];
  const same: (readonly [number, number])[] = [];
  for (let pair = 0; pair < Number(values.pairs); pair += 1) {
    const clients = ['bare', 'ours', 'bare'].map((kind) => start('client', String(port), kind, values.parallel));
    // So that neither of the bare ones is always the one that was started first.
    if (pair % 2 === 1) clients.reverse();
    await measureRounds(clients, WARM_UP_ROUNDS);
    const [bare = NaN, intercepted = NaN, again = NaN] = await measureRounds(clients, ROUNDS_PER_PAIR);
    for (const client of clients) client.disconnect();
    // Ours ran between the two, so that a machine that grows slower doesn't count against it.
    ours.push([intercepted, (bare + again) / 2]);
    same.push([again, bare]);
  }
  const calls = ROUNDS_PER_PAIR * CALLS_PER_TURN;
  const bareUs = ours.reduce((sum, [, bare]) => sum + bare, 0) / ours.length;
  console.log(
    `processor time of the client per call, ${values.pairs} pairs of ${calls} calls, ${values.parallel} at once; ` +
      `${bareUs.toFixed(0)} µs without the interceptor:`,
  );
  console.log(`  with the interceptor, against without: ${inWords(pairedRatio(ours))}`);
  console.log(`  without, against without (the noise):  ${inWords(pairedRatio(same))}`);
  server.disconnect();
}

function inWords({ mean, low, high }: Ratio): string {
  return `${mean.toFixed(3)} (95 %: ${low.toFixed(3)} to ${high.toFixed(3)})`;
}

const [role, port = '', kind = '', parallel = '16'] = process.argv.slice(2);
if (role === 'serve') serve();
else if (role === 'client') takeTurns(port, kind, Number(parallel));
else void main();
