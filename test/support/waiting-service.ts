import { status } from '@grpc/grpc-js';
import {
  type AttemptService,
  type AttemptServiceOptions,
  payAndComplete,
  startAttemptService,
} from './attempt-service';
import { type Deferred, deferred } from './deferred';
import type { StockAnswer } from './stock-client';
import { until } from './until';

/** Longer than any of these tests. */
const LONG_MS = 60_000;

/** A service whose duplicates wait, and how many of its claims have met a running attempt so far. */
export interface WaitingService extends AttemptService {
  duplicates(): number;
  /** How long each of these let pass before it claimed again, milliseconds. */
  pausesMs(): readonly number[];
  /** Resolves when so many calls wait, or have been refused. */
  met(count: number): Promise<void>;
  /** Opened at the latest when the service stops, so that a test that fails leaves nobody waiting. */
  readonly gates: Deferred<void>[];
}

/** Starts one, whose duplicates wait longer than a test does unless the options say otherwise. */
export async function startWaitingService(options: AttemptServiceOptions = {}): Promise<WaitingService> {
  let met = 0;
  const metAtMs = new WeakMap<object, number>();
  const pausesMs: number[] = [];
  const gates: Deferred<void>[] = [];
  const service = await startAttemptService({
    ...options,
    policy: { maxWaitMs: LONG_MS, ...options.policy },
    wrapStore: (store) => ({
      ...(options.wrapStore?.(store) ?? store),
      claim: async (request) => {
        const before = metAtMs.get(request);
        if (before !== undefined) pausesMs.push(performance.now() - before);
        const outcome = await store.claim(request);
        if (outcome.kind === 'in_progress') {
          met += 1;
          metAtMs.set(request, performance.now());
        }
        return outcome;
      },
    }),
  });
  return {
    ...service,
    gates,
    duplicates: () => met,
    pausesMs: () => pausesMs,
    met: (count) => until(`${count} duplicates have met a running attempt`, () => Promise.resolve(met >= count)),
    stop: () => {
      for (const gate of gates) gate.resolve();
      return service.stop();
    },
  };
}

/** Handlers that start, say so, and go on when they are told to. */
export interface Gate {
  readonly started: Deferred<void>;
  readonly proceed: Deferred<void>;
  runs(): number;
}

/** Has the payments of `order-1` wait at a gate; others pay at once. */
export function holdPayments(service: WaitingService, end: typeof payAndComplete = payAndComplete): Gate {
  const [started, proceed] = [deferred(), deferred()];
  service.gates.push(proceed);
  let runs = 0;
  service.handle({
    createPayment: async (request, attempt) => {
      if (request.orderId !== 'order-1') return payAndComplete(request, attempt);
      runs += 1;
      started.resolve();
      await proceed.promise;
      return end(request, attempt);
    },
  });
  return { started, proceed, runs: () => runs };
}

/** The answer of another call, told again. */
export function expectReplay(answer: StockAnswer, of: StockAnswer): void {
  expect(answer.code).toBe(status.OK);
  expect(answer.bytes).toEqual(of.bytes);
  expect(answer.trailers.get('idempotent-replayed')).toEqual(['true']);
}

/** A refusal that says when to come back. */
export function expectInProgress({ code, error, trailers, trailersOnly }: StockAnswer): void {
  expect({ code, trailersOnly, reason: error.reason }).toEqual({
    ...{ code: status.ABORTED, trailersOnly: true, reason: 'REQUEST_IN_PROGRESS' },
  });
  expect(error.retryDelayMs).toBeGreaterThan(0);
  expect(trailers.get('grpc-retry-pushback-ms')).toEqual([String(error.retryDelayMs)]);
}
