import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type ChannelOptions, status } from '@grpc/grpc-js';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { CHANNEL_OPTIONS } from '../../src/idempotency/client/channel-options';
import type { ClientOptions } from '../../src/idempotency/client/client-options';
import { createClientInterceptor } from '../../src/idempotency/client/interceptor';
import { createRetryBudget } from '../../src/idempotency/client/retry-budget';
import type { ClientEvent } from '../../src/idempotency/events';
import { newRequestId } from '../../src/idempotency/request-id';
import { loadPolicies } from '../../src/idempotency/policies/descriptor-set';
import {
  fail,
  metadataOf,
  PATHS,
  type RawClient,
  rawClient,
  type Reply,
  type ScriptedServer,
  startScriptedServer,
  succeed,
} from '../support/scripted-server';
import { until } from '../support/until';

const policies = loadPolicies(descriptorSet);
const down = fail(status.UNAVAILABLE, 'down');

/** Between the calls of one caller: 200 of them must not be what a busy machine is slow with. */
const PAUSE_MS = 400;

const ends: (() => void)[] = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

function clientOf(
  address: string,
  options: Partial<ClientOptions>,
  channelOptions: ChannelOptions = {},
): { client: RawClient; events: ClientEvent[] } {
  const events: ClientEvent[] = [];
  const onEvent = (event: ClientEvent) => void events.push(event);
  const interceptor = createClientInterceptor({ policies, initialBackoffMs: 1, onEvent, ...options });
  const client = rawClient(address, [interceptor], { ...CHANNEL_OPTIONS, ...channelOptions });
  ends.push(() => client.client.close());
  return { client, events };
}

async function serve(...script: readonly Reply[]): Promise<ScriptedServer> {
  const server = await startScriptedServer(...script);
  ends.push(() => server.close());
  return server;
}

async function startAnsweringServer(port = 0): Promise<{ readonly port: number; kill(): Promise<void> }> {
  const child = fork(join(__dirname, '../support/answering-server.ts'), [String(port)], {
    execArgv: ['--import', 'tsx'],
  });
  ends.push(() => child.kill('SIGKILL'));
  const [listensOn] = (await once(child, 'message')) as [number];
  return {
    port: listensOn,
    kill: async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

const tokensOf = (events: readonly ClientEvent[]) =>
  events.flatMap((event) => (event.type === 'retry_budget' ? [event.tokens] : []));

test('a server that is down gets ten retries, then each call once', async () => {
  const server = await serve(down);
  const { client, events } = clientOf(server.address, { maxAttempts: 3 });
  const details = new Set<string | undefined>();
  for (let call = 1; call <= 20; call += 1) details.add((await client.call(PATHS.safe)).error?.details);
  expect(server.arrivals).toHaveLength(30);
  expect(details).toContain(
    'down (gave up after 1 attempt: the retry budget of the server is used up; the same call may be sent again later)',
  );
  expect(events).toContainEqual({ type: 'retry_refused', path: PATHS.safe, reason: 'budget' });
  expect(tokensOf(events)).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
});

test('what fails for good costs nothing, and ten successes earn a retry', async () => {
  const answers = Array.from({ length: 5 }, () => fail(status.NOT_FOUND, 'none'));
  const successes = Array.from({ length: 10 }, () => succeed('done'));
  const server = await serve(down, ...answers, ...successes, down, succeed('done'));
  const retryBudget = createRetryBudget({ target: 'shop', maxTokens: 1 });
  retryBudget.spend();
  const { client, events } = clientOf(server.address, { retryBudget });
  expect((await client.call(PATHS.safe)).error?.code).toBe(status.UNAVAILABLE);
  for (let call = 1; call <= 5; call += 1) expect((await client.call(PATHS.safe)).error?.code).toBe(status.NOT_FOUND);
  for (let call = 1; call <= 10; call += 1) expect((await client.call(PATHS.safe)).error).toBeNull();
  expect((await client.call(PATHS.safe)).error).toBeNull();
  expect(tokensOf(events)).toEqual([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 0, 0.1]);
  expect(new Set(events.flatMap((event) => (event.type === 'retry_budget' ? [event.target] : [])))).toEqual(
    new Set(['shop']),
  );
});

test('interceptors that are given the same budget share it', async () => {
  const server = await serve(down);
  const retryBudget = createRetryBudget({ maxTokens: 3 });
  const clients = [1, 2].map(() => clientOf(server.address, { retryBudget, maxAttempts: 3 }).client);
  for (const client of clients) await client.call(PATHS.safe);
  expect(server.arrivals).toHaveLength(2 + 3);
});

test('an outage: 200 callers stay within the budget, and after it each call is OK at its first attempt', async () => {
  const before = await startAnsweringServer();
  // Less time than a service has, and reconnecting with it.
  const options = { attemptTimeoutMs: 1_000, timeoutMs: 1_500 };
  const { client, events } = clientOf(`127.0.0.1:${before.port}`, options, { 'grpc.max_reconnect_backoff_ms': 300 });
  const calls: { readonly beganAt: number; readonly attempts: number; readonly code: status }[] = [];
  let isOver = false;
  const caller = async (): Promise<void> => {
    while (!isOver) {
      const beganAt = performance.now();
      const { status: end } = await client.call(PATHS.unknown, {
        metadata: metadataOf({ 'request-id': newRequestId() }),
      });
      calls.push({ beganAt, attempts: (end as { attempts?: number }).attempts ?? NaN, code: end.code });
      await delay(PAUSE_MS);
    }
  };
  const callers = Array.from({ length: 200 }, caller);
  await until('every caller has called', async () => calls.length >= 300);
  await before.kill();
  // Longer than a call waits: each caller fails in it, and most of them twice.
  await delay(3_000);
  await startAnsweringServer(before.port);
  const endedAt = performance.now();
  const later = (): typeof calls => calls.filter(({ beganAt }) => beganAt > endedAt + 1_000);
  await until('500 calls have ended that began one second after the outage', async () => later().length >= 500);
  isOver = true;
  await Promise.all(callers);

  const during = calls.filter(({ beganAt }) => beganAt < endedAt);
  const attempts = (of: typeof calls) => of.reduce((sum, call) => sum + call.attempts, 0);
  expect(during.filter(({ code }) => code !== status.OK).length).toBeGreaterThanOrEqual(200);
  expect(attempts(during) / during.length).toBeLessThanOrEqual(1.2);
  expect(attempts(calls) / calls.length).toBeLessThanOrEqual(1.2);
  const atOnce = later().filter((call) => call.code === status.OK && call.attempts === 1);
  expect(atOnce.length / later().length).toBeGreaterThanOrEqual(0.99);
  expect(Math.min(...tokensOf(events))).toBeGreaterThanOrEqual(0);
});
