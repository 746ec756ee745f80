import { status } from '@grpc/grpc-js';
import type { ClientOptions } from '../../src/idempotency/client/client-options';
import { newRequestId } from '../../src/idempotency/request-id';
import { refusalStatus } from '../../src/idempotency/wire/error-details';
import { down, useScriptedClients } from '../support/scripted-client';
import { type Arrival, fail, metadataOf, PATHS, type Reply, succeed } from '../support/scripted-server';

/** The upper ends of the waits with the settings that clients have unless told otherwise, milliseconds. */
const UPPER_ENDS_MS = [100, 200, 400, 800, 1_600, 3_200, 5_000];
/** A jitter that is the same every time. */
const HALF = 0.5;
/** Timers keep whole milliseconds: one may seem to be over by so much too early. */
const EARLY_MS = 1;
/** What an answer, a timer and the next arrival may take besides, milliseconds. */
const WAY_MS = 20;
/** A busy machine makes some gaps longer, hardly the same one every time. */
const CALLS = 4;

const { setUp } = useScriptedClients();

/** The time between each arrival and the next, milliseconds. */
const gapsOf = (arrivals: readonly Arrival[]): readonly number[] =>
  arrivals.slice(1).map(({ atMs }, index) => atMs - (arrivals[index]?.atMs ?? NaN));

/** A client that is connected, and has retried before; the call that is measured begins later. */
interface Connected {
  /** The gaps of the call. */
  call(): Promise<readonly number[]>;
  /** Resolves when the second attempt of the call arrives. */
  retried(): Promise<void>;
}

async function connect(script: readonly Reply[], options: Partial<ClientOptions>): Promise<Connected> {
  const warmUp = [askToComeBack(1), succeed('connected')];
  const { server, client } = await setUp([...warmUp, ...script], options);
  while ((await client.call(PATHS.safe)).error !== null);
  return {
    call: async () => {
      await client.call(PATHS.unknown, { metadata: metadataOf({ 'request-id': newRequestId() }) });
      return gapsOf(server.arrivals.slice(warmUp.length));
    },
    retried: () => server.arrived(warmUp.length + 2),
  };
}

/** The gaps of calls that run side by side, of which each begins when the one before it has been retried. */
async function gapsOfCalls(clients: readonly Connected[]): Promise<readonly (readonly number[])[]> {
  const calls: Promise<readonly number[]>[] = [];
  for (const { call, retried } of clients) {
    const ended = call();
    calls.push(ended);
    await Promise.race([ended, retried()]);
  }
  return Promise.all(calls);
}

/** No wait of a call is shorter than it has to be, and each is within a fifth of it in one of the calls at least. */
function expectGaps(calls: readonly (readonly number[])[], waitsMs: readonly number[]): void {
  for (const [index, waitMs] of waitsMs.entries()) {
    const leastMs = Math.min(...calls.map((gaps) => gaps[index] ?? Infinity));
    expect(leastMs).toBeGreaterThanOrEqual(waitMs - EARLY_MS);
    expect(leastMs).toBeLessThanOrEqual(waitMs * 1.2 + WAY_MS);
  }
}

/** Asks to come back after so long, in the two ways that a server has. */
const askBy: Readonly<Record<string, (waitMs: number) => Reply>> = {
  'grpc-retry-pushback-ms': askToComeBack,
  RetryInfo: (waitMs) => {
    const { code, details, metadata } = refusalStatus({
      ...{ reason: 'REQUEST_IN_PROGRESS', message: 'busy', retryAfterMs: waitMs },
    });
    metadata.remove('grpc-retry-pushback-ms');
    return fail(code, details, metadata);
  },
};

function askToComeBack(waitMs: number): Reply {
  return fail(status.UNAVAILABLE, 'busy', metadataOf({ 'grpc-retry-pushback-ms': String(waitMs) }));
}

describe('the gaps between the attempts of a call, at the server (case J2)', () => {
  it('are those of the backoff, for 1 to 8 attempts', async () => {
    const counts = [8, 7, 6, 5, 4, 3, 2, 1];
    // As it is shipped, but for the jitter.
    const optionsOf = (maxAttempts: number) => ({ maxAttempts, initialBackoffMs: undefined, random: () => HALF });
    const clients = await Promise.all(counts.map((count) => connect([down], optionsOf(count))));
    const calls = await gapsOfCalls(clients);
    expect(calls.map((gaps) => gaps.length + 1)).toEqual(counts);
    expectGaps(
      calls,
      UPPER_ENDS_MS.map((upperEndMs) => HALF * upperEndMs),
    );
  });

  it('have a jitter of their own each, from nothing to the upper end', async () => {
    const connectOne = (): Promise<Connected> => {
      const jitters = [0.9, 0, 0.25, 0.75];
      return connect([down], { maxAttempts: 5, initialBackoffMs: 100, random: () => jitters.shift() ?? 0 });
    };
    const calls = await gapsOfCalls(await Promise.all(Array.from({ length: CALLS }, connectOne)));
    expect(calls.map((gaps) => gaps.length)).toEqual(Array(CALLS).fill(4));
    expectGaps(calls, [90, 0, 100, 600]);
  });

  it.each(Object.keys(askBy))('are those that the server asks for by %s, longer or shorter than ours', async (way) => {
    const waitsMs = [300, 50, 150];
    const script = waitsMs.map((waitMs) => askBy[way]?.(waitMs) ?? down);
    for (const random of [() => 0, () => 0.99]) {
      const options = { maxAttempts: 4, initialBackoffMs: 1_000, random };
      const clients = Array.from({ length: CALLS }, () => connect(script, options));
      const calls = await gapsOfCalls(await Promise.all(clients));
      expect(calls.map((gaps) => gaps.length)).toEqual(Array(CALLS).fill(3));
      expectGaps(calls, waitsMs);
    }
  });
});
