import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { createRetryBudget } from '../../src/idempotency/client/retry-budget';
import { type AnsweringProcess, startAnsweringProcess } from '../support/answering-process';
import { countRetries, type EndedCall, meanAttempts, shareOkAtOnce, startCallers } from '../support/many-callers';
import { down, type ScriptedClient, useScriptedClients } from '../support/scripted-client';
import { fail, PATHS, succeed } from '../support/scripted-server';
import { until } from '../support/until';

const CALLERS = 200;
/** Between the calls of one caller: all of them must not be what a busy machine is slow with. */
const PAUSE_MS = 400;

const { atEnd, clientOf, serve } = useScriptedClients();

async function startAnsweringServer(port = 0): Promise<AnsweringProcess> {
  const server = await startAnsweringProcess({ port });
  atEnd(() => void server.kill());
  return server;
}

const tokensOf = (budget: ScriptedClient['budget']): readonly number[] => budget.map(({ tokens }) => tokens);

test('a server that is down gets ten retries, then each call once', async () => {
  const server = await serve(down);
  const { client, events, budget } = clientOf(server.address, { maxAttempts: 3 });
  const details = new Set<string | undefined>();
  for (let call = 1; call <= 20; call += 1) details.add((await client.call(PATHS.safe)).error?.details);
  expect(server.arrivals).toHaveLength(30);
  expect(details).toContain(
    'down (gave up after 1 attempt: the retry budget of the server is used up; the same call may be sent again later)',
  );
  expect(events).toContainEqual({ type: 'retry_refused', path: PATHS.safe, reason: 'budget' });
  expect(tokensOf(budget)).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
});

test('what fails for good costs nothing, and ten successes earn a retry', async () => {
  const answers = Array.from({ length: 5 }, () => fail(status.NOT_FOUND, 'none'));
  const successes = Array.from({ length: 10 }, () => succeed('done'));
  const server = await serve(down, ...answers, ...successes, down, succeed('done'));
  const retryBudget = createRetryBudget({ target: 'shop', maxTokens: 1 });
  retryBudget.spend();
  const { client, budget } = clientOf(server.address, { retryBudget });
  expect((await client.call(PATHS.safe)).error?.code).toBe(status.UNAVAILABLE);
  for (let call = 1; call <= 5; call += 1) expect((await client.call(PATHS.safe)).error?.code).toBe(status.NOT_FOUND);
  for (let call = 1; call <= 10; call += 1) expect((await client.call(PATHS.safe)).error).toBeNull();
  expect((await client.call(PATHS.safe)).error).toBeNull();
  expect(tokensOf(budget)).toEqual([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 0, 0.1]);
  expect(new Set(budget.map(({ target }) => target))).toEqual(new Set(['shop']));
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
  const port = await before.listen();
  const after = await startAnsweringServer(port);
  // Less time than a service has, and reconnecting with it. The times that users get are for client-outage.
  const options = { attemptTimeoutMs: 1_000, timeoutMs: 1_500 };
  const { client, budget } = clientOf(`127.0.0.1:${port}`, options, { 'grpc.max_reconnect_backoff_ms': 300 });
  const callers = startCallers(client, CALLERS, PAUSE_MS);
  const { calls } = callers;
  await until('every caller has called', async () => calls.length >= 300);
  const beganAt = performance.now();
  await before.kill();
  // Longer than a call waits and a caller rests.
  await delay(3_000);
  await after.listen();
  const endedAt = performance.now();
  const later = (): readonly EndedCall[] => calls.filter((call) => call.beganAt > endedAt + 1_000);
  await until('500 calls have ended that began one second after the outage', async () => later().length >= 500);
  await callers.stop();

  const during = calls.filter((call) => call.endedAt > beganAt && call.beganAt < endedAt);
  expect(new Set(during.filter(({ isOk }) => !isOk).map(({ caller }) => caller)).size).toBe(CALLERS);
  expect(meanAttempts(during)).toBeLessThanOrEqual(1.2);
  expect(countRetries(calls)).toBeLessThanOrEqual(10 + 0.1 * calls.filter(({ isOk }) => isOk).length);
  expect(shareOkAtOnce(later())).toBeGreaterThanOrEqual(0.99);
  expect(Math.min(...tokensOf(budget))).toBeGreaterThanOrEqual(0);
});
