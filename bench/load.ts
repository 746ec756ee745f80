import { randomUUID } from 'node:crypto';
import { Metadata } from '@grpc/grpc-js';
import type { PaymentsServiceClient } from '../src/gen/proto/payments/v1/payments';
import { newRequestId } from '../src/idempotency/index';
import type { Work } from './handlers';
import type { ServerProcess } from './server-process';

/** One call, whose promise rejects when it fails: a bench of errors measures nothing. */
export type Call = (client: PaymentsServiceClient) => Promise<void>;

/** What a slice of load measured. */
export interface Slice {
  readonly calls: number;
  readonly callsPerSecond: number;
  /** Median time of a call, milliseconds. */
  readonly p50Ms: number;
  /** Processor time of the server's process per call, microseconds. */
  readonly cpuUs: number;
}

/** Keeps `parallel` calls on their way for `durationMs`, each as soon as the one before it has ended. */
export async function load(
  server: ServerProcess,
  call: Call,
  { parallel, durationMs }: { readonly parallel: number; readonly durationMs: number },
): Promise<Slice> {
  const latencies: number[] = [];
  const cpuBefore = await server.cpuUs();
  const startedAt = performance.now();
  const endsAt = startedAt + durationMs;
  const callAgain = async (): Promise<void> => {
    for (let now = performance.now(); now < endsAt;) {
      const calledAt = now;
      await call(server.client);
      now = performance.now();
      latencies.push(now - calledAt);
    }
  };
  await Promise.all(Array.from({ length: parallel }, callAgain));
  const elapsedMs = performance.now() - startedAt;
  const cpuUs = (await server.cpuUs()) - cpuBefore;
  latencies.sort((a, b) => a - b);
  return {
    calls: latencies.length,
    callsPerSecond: (latencies.length / elapsedMs) * 1_000,
    p50Ms: latencies[latencies.length >> 1] ?? 0,
    cpuUs: cpuUs / latencies.length,
  };
}

/** Makes a number of calls, sixteen at a time, and measures nothing. */
export async function warm({ client }: ServerProcess, call: Call, calls: number): Promise<void> {
  let left = calls;
  const callAgain = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await call(client);
    }
  };
  await Promise.all(Array.from({ length: 16 }, callAgain));
}

/** A first execution: an order and a key of its own. */
export function firstExecution(work: Work): Call {
  return (client) => pay(client, work, { orderId: `order-${randomUUID()}`, requestId: newRequestId() });
}

/** Makes `count` payments, and returns a call that asks for them again, one after the other. */
export async function replays(client: PaymentsServiceClient, count: number): Promise<Call> {
  const made = Array.from({ length: count }, () => ({ orderId: `order-${randomUUID()}`, requestId: newRequestId() }));
  for (const order of made) await pay(client, 'small', order);
  let next = 0;
  return (again) => pay(again, 'small', made[next++ % made.length] as Order);
}

/** Reads one payment; an empty id asks for no statement. */
export function safeRead(paymentId: string): Call {
  return (client) =>
    new Promise((resolve, reject) => {
      client.getPayment({ paymentId }, (error) => (error === null ? resolve() : reject(error)));
    });
}

interface Order {
  readonly orderId: string;
  readonly requestId: string;
}

function pay(client: PaymentsServiceClient, work: Work, { orderId, requestId }: Order): Promise<void> {
  const metadata = new Metadata();
  metadata.set('request-id', requestId);
  const request = {
    ...{ orderId, amountMinor: 1_250n, currency: 'EUR', paymentMethod: work },
    ...{ metadata: { basket: '7' }, clientSentAt: undefined },
  };
  return new Promise((resolve, reject) => {
    client.createPayment(request, metadata, (error) => (error === null ? resolve() : reject(error)));
  });
}
