/**
 * What the client interceptor costs a call that succeeds at once, as processor time of the client per call, against a
 * grpc-js client without it that sends the same message, key and deadline:
 * `node -r ./bench/swc-register.js bench/client-overhead.ts [--pairs N]`.
 * Both are measured in turn, the next time in the opposite order; the server is a process of its own that answers from
 * memory. Prints the ratio with its 95 % interval.
 */
import { fork } from 'node:child_process';
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
import { pairedRatio } from './ratio';

const CALLS_PER_SLICE = 2_000;
const PARALLEL = 16;

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
async function measure(client: PaymentsServiceClient, calls: number): Promise<number> {
  const before = process.cpuUsage();
  let begun = 0;
  const caller = async (): Promise<void> => {
    while (begun < calls) {
      begun += 1;
      await pay(client);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, caller));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls;
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

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { pairs: { type: 'string', default: '20' } } });
  const child = fork(__filename, ['serve'], { execArgv: process.execArgv });
  const [port] = (await once(child, 'message')) as [number];
  const address = `127.0.0.1:${port}`;
  const interceptor = createClientInterceptor({ policies: loadPolicies(descriptorSet) });
  // Connections of their own: what one leaves to do must not be done while the other is measured.
  const own = { ...CHANNEL_OPTIONS, 'grpc.use_local_subchannel_pool': 1 };
  const bare = new PaymentsServiceClient(address, credentials.createInsecure(), own);
  const ours = new PaymentsServiceClient(address, credentials.createInsecure(), {
    ...own,
    interceptors: [interceptor],
  });
  for (const client of [bare, ours, bare, ours]) await measure(client, 2 * CALLS_PER_SLICE);
  const pairs: (readonly [number, number])[] = [];
  for (let pair = 0; pair < Number(values.pairs); pair += 1) {
    const [first, second] = pair % 2 === 0 ? [ours, bare] : [bare, ours];
    const one = await measure(first, CALLS_PER_SLICE);
    const other = await measure(second, CALLS_PER_SLICE);
    pairs.push(first === ours ? [one, other] : [other, one]);
  }
  const { mean, low, high } = pairedRatio(pairs);
  console.log(
    `client interceptor, processor time per call against the bare client: ${mean.toFixed(3)} ` +
      `(95 %: ${low.toFixed(3)} to ${high.toFixed(3)}, ${pairs.length} pairs of ${CALLS_PER_SLICE} calls)`,
  );
  bare.close();
  ours.close();
  child.disconnect();
}

if (process.argv[2] === 'serve') serve();
else void main();
