import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Metadata, status } from '@grpc/grpc-js';
import type { ClientEvent } from '../../src/idempotency/events';
import { readCallFailure } from '../../src/idempotency/client/idempotency-error';
import { loadPolicies } from '../../src/idempotency/policies/descriptor-set';
import { createRequestIds } from '../../src/idempotency/request-id';
import { changedDescriptorSet } from '../support/descriptor-set';
import { startFaultyProxy } from '../support/faulty-proxy';
import { down, useScriptedClients } from '../support/scripted-client';
import { fail, hang, metadataOf, type Outcome, PATHS, succeed } from '../support/scripted-server';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const { clientOf, serve, setUp } = useScriptedClients();

/** A UUIDv7 that was made so long ago. */
const keyAged = (ageMs: number): Metadata =>
  metadataOf({ 'request-id': createRequestIds({ nowMs: () => Date.now() - ageMs })() });

const failureOf = ({ error }: Outcome) => (error === null ? undefined : readCallFailure(error));

test.each<[string, number, number]>([
  ['young enough', DAY_MS - 60_000, 2],
  ['too old', DAY_MS + 1, 1],
  ['of the future', -60_000, 2],
])('a call with a dated key that is %s is sent as often as its max age lets it', async (_, ageMs, sent) => {
  const { server, client } = await setUp([down, succeed('done')]);
  const outcome = await client.call(PATHS.unknown, { metadata: keyAged(ageMs) });
  expect(server.arrivals).toHaveLength(sent);
  if (sent === 2) return expect(outcome.error).toBeNull();
  expect(failureOf(outcome)).toMatchObject({ why: 'key_expired', attempts: 1, outcomeUnknown: true, retriable: false });
  expect(outcome.error?.details).toMatch(
    /^down \(gave up after 1 attempt: the request-id is too old to be sent again;/,
  );
});

test('the max age is that of the method', async () => {
  const policies = loadPolicies(changedDescriptorSet({ CreatePayment: { maxKeyAgeMs: HOUR_MS } }));
  const { server, client } = await setUp([down, succeed('done')], { policies });
  const outcome = await client.call(PATHS.unknown, { metadata: keyAged(2 * HOUR_MS) });
  expect([server.arrivals.length, failureOf(outcome)?.why]).toEqual([1, 'key_expired']);
});

test('an undated key lives from the start of the call, and a level that needs no key has no such end', async () => {
  const { client } = await setUp([down, succeed('done')], { keyLifetimeMs: 5_000 });
  expect((await client.call(PATHS.unknown, { metadata: metadataOf({ 'request-id': randomUUID() }) })).error).toBeNull();
  const read = await setUp([down, succeed('done')], { keyLifetimeMs: 1 });
  expect((await read.client.call(PATHS.safe, { metadata: keyAged(DAY_MS * 9) })).error).toBeNull();
});

test('the first attempt of a call asks about an old key: what became of it is the server’s to say', async () => {
  const { server, client } = await setUp([succeed('recorded')]);
  expect((await client.call(PATHS.unknown, { metadata: keyAged(2 * DAY_MS) })).text).toBe('recorded');
  expect(server.arrivals).toHaveLength(1);
});

test('an attempt that hangs is not followed by one after the end of the key', async () => {
  const options = { keyLifetimeMs: 400, attemptTimeoutMs: 5_000, timeoutMs: 5_000 };
  const { server, client } = await setUp([hang, succeed('too late')], options);
  const startedAt = performance.now();
  const outcome = await client.call(PATHS.unknown, { metadata: metadataOf({ 'request-id': randomUUID() }) });
  expect(performance.now() - startedAt).toBeLessThan(1_500);
  expect(failureOf(outcome)).toMatchObject({ why: 'key_expired', outcomeUnknown: true });
  expect(server.arrivals).toHaveLength(1);
});

test('a process that was held up past the end of a key sends nothing more', async () => {
  const onEvent = ({ type }: ClientEvent): void => {
    const startedAt = performance.now();
    while (type === 'retry' && performance.now() - startedAt < 450);
  };
  const { server, client } = await setUp([down, succeed('too late')], { keyLifetimeMs: 400, onEvent });
  const outcome = await client.call(PATHS.unknown, { metadata: metadataOf({ 'request-id': randomUUID() }) });
  expect([server.arrivals.length, failureOf(outcome)?.why]).toEqual([1, 'key_expired']);
});

test('what a server says of the end of a key counts before what its proto says', async () => {
  const soon = metadataOf({
    'idempotency-expires-at': new Date(Date.now() + 300).toISOString(),
    'grpc-retry-pushback-ms': '400',
  });
  const { server, client } = await setUp([fail(status.UNAVAILABLE, 'down', soon), succeed('too late')]);
  const outcome = await client.call(PATHS.unknown, { metadata: keyAged(0) });
  expect([server.arrivals.length, failureOf(outcome)?.why]).toEqual([1, 'key_expired']);
});

// Case I1.
test('a server that is away for longer than a key lives: nothing is sent once it is back', async () => {
  const away = await startFaultyProxy(1, []);
  const port = Number(away.address.split(':')[1]);
  away.close();
  const { client } = clientOf(`127.0.0.1:${port}`, { keyLifetimeMs: 600, attemptTimeoutMs: 250 });
  const call = client.call(PATHS.unknown, { metadata: metadataOf({ 'request-id': randomUUID() }) });
  await delay(900);
  const server = await serve({ port }, succeed('too late'));
  const outcome = await call;
  expect(failureOf(outcome)).toMatchObject({ why: 'key_expired', outcomeUnknown: true });
  // Once something else gets through, nothing of the call was left behind either.
  expect((await client.call(PATHS.safe)).error).toBeNull();
  expect(server.arrivals.map(({ path }) => path)).toEqual([PATHS.safe]);
});
