import { Metadata, status } from '@grpc/grpc-js';
import { readCallFailure } from '../../src/idempotency/client/idempotency-error';
import type { RefusalReason } from '../../src/idempotency/errors';
import { newRequestId } from '../../src/idempotency/request-id';
import { refusalStatus } from '../../src/idempotency/wire/error-details';
import { down, policies, useScriptedClients } from '../support/scripted-client';
import { fail, metadataOf, type Outcome, PATHS, type Reply, succeed } from '../support/scripted-server';

const ID = newRequestId();
const keyed = (): Metadata => metadataOf({ 'request-id': ID });

const { setUp } = useScriptedClients();

const refuse = (reason: RefusalReason, retryAfterMs?: number): Reply => {
  const { code, details, metadata } = refusalStatus({
    reason,
    message: 'refused',
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
  return fail(code, details, metadata);
};

describe('retries', () => {
  test.each([
    ['safe', PATHS.safe, new Metadata()],
    ['idempotent', PATHS.idempotent, new Metadata()],
    ['keyed', PATHS.unknown, keyed()],
    ['keyed and not in the registry', PATHS.unregistered, keyed()],
  ])('a %s call is sent until it succeeds, with one key and the same bytes', async (_, path, metadata) => {
    const { server, client, events } = await setUp([down, down, succeed('done')]);
    const outcome = await client.call(path, { metadata, message: Buffer.from('pay') });
    expect(outcome).toMatchObject({ error: null, text: 'done', status: { code: status.OK } });
    expect(server.arrivals.map(({ message }) => message.toString())).toEqual(['pay', 'pay', 'pay']);
    const ids = server.arrivals.map((arrival) => arrival.metadata.get('request-id'));
    expect(ids).toEqual([1, 2, 3].map(() => metadata.get('request-id')));
    const previous = server.arrivals.map((arrival) => arrival.metadata.get('grpc-previous-rpc-attempts'));
    expect(previous).toEqual([[], ['1'], ['2']]);
    expect(events.map(({ type }) => type)).toEqual(['retry', 'retry', 'call']);
    expect(events[2]).toEqual({ type: 'call', path, attempts: 3, code: status.OK });
  });

  test.each([1, 2, 3, 4, 5, 6, 7, 8])('maxAttempts %i is the number that arrives (case J2)', async (maxAttempts) => {
    const { server, client, events } = await setUp([down], { maxAttempts });
    const { error } = await client.call(PATHS.safe);
    expect(server.arrivals).toHaveLength(maxAttempts);
    expect(error).toMatchObject({ code: status.UNAVAILABLE });
    const attempts = maxAttempts === 1 ? '1 attempt' : `${maxAttempts} attempts`;
    expect(error?.details).toMatch(new RegExp(`^down \\(gave up after ${attempts}: no attempts left`));
    expect(events.at(-2)).toEqual({ type: 'retry_refused', path: PATHS.safe, reason: 'attempts' });
  });

  test('the trailers and the initial metadata of the attempt that succeeded arrive, of others nothing', async () => {
    const withInitial =
      (name: string, reply: Reply): Reply =>
      (answer, call) => {
        call.sendMetadata(metadataOf({ attempt: name }));
        reply(answer, call);
      };
    const failed = fail(status.UNAVAILABLE, 'down', metadataOf({ loser: 'yes' }));
    const trailers = metadataOf({ 'idempotent-replayed': 'true' });
    const { client } = await setUp([withInitial('1', failed), withInitial('2', succeed('done', trailers))]);
    const outcome = await client.call(PATHS.safe);
    expect(outcome.initial?.get('attempt')).toEqual(['2']);
    expect(outcome.status.metadata.getMap()).toMatchObject({ 'idempotent-replayed': 'true' });
    expect(outcome.status.metadata.get('loser')).toEqual([]);
  });

  test.each(['REQUEST_IN_PROGRESS', 'CLAIM_LOST'] as const)('%s is retried after its hint', async (reason) => {
    const { server, client, events } = await setUp([refuse(reason, 80), succeed('done')]);
    expect(await client.call(PATHS.unknown, { metadata: keyed() })).toMatchObject({ error: null, text: 'done' });
    expect(events[0]).toEqual({ type: 'retry', path: PATHS.unknown, reason, delayMs: 80 });
    const [first, second] = server.arrivals;
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(79);
  });

  test.each(['REQUEST_ID_REUSED', 'REQUEST_ID_EXPIRED', 'REQUEST_PARKED', 'PRINCIPAL_MISSING'] as const)(
    '%s is the answer, word for word',
    async (reason) => {
      const { server, client, events } = await setUp([refuse(reason)]);
      const { error } = await client.call(PATHS.unknown, { metadata: keyed() });
      expect(server.arrivals).toHaveLength(1);
      expect(error?.details).toBe('refused');
      expect(events.map(({ type }) => type)).toEqual(['call']);
    },
  );

  test.each(['soon', '-1', '1.5', '', '5, 7'])('pushback "%s" stops', async (pushback) => {
    const failed = fail(status.UNAVAILABLE, 'down', metadataOf({ 'grpc-retry-pushback-ms': pushback }));
    const { server, client } = await setUp([failed]);
    const { error } = await client.call(PATHS.safe);
    expect(server.arrivals).toHaveLength(1);
    expect(error).toMatchObject({ code: status.UNAVAILABLE });
    expect(error?.details).toBe('down (gave up after 1 attempt: the server asked for no retry)');
  });

  test('a refusal of a later attempt says nothing of what an earlier one did', async () => {
    const { client } = await setUp([down, fail(status.UNAUTHENTICATED, 'the token is over')]);
    const { error } = await client.call(PATHS.unknown, { metadata: keyed() });
    expect(error?.details).toBe('the token is over');
    const failure = error === null ? undefined : readCallFailure(error);
    expect(failure).toEqual({ why: 'answer', attempts: 2, outcomeUnknown: true, requestId: ID, retriable: false });
  });

  test('the last real error comes with its trailers', async () => {
    const details = metadataOf({ 'grpc-status-details-bin': Buffer.from([8, 14]) });
    const { server, client } = await setUp([fail(status.UNAVAILABLE, 'down', details)], { maxAttempts: 2 });
    const { error } = await client.call(PATHS.safe);
    expect(server.arrivals).toHaveLength(2);
    expect(error?.metadata.get('grpc-status-details-bin')).toEqual([Buffer.from([8, 14])]);
  });

  test('error details that can’t be read stop, and the status comes with them as it was sent', async () => {
    const garbage = Buffer.from([255, 255, 255]);
    const details = metadataOf({ 'grpc-status-details-bin': garbage });
    const { server, client } = await setUp([fail(status.UNAVAILABLE, 'down', details)]);
    const { error } = await client.call(PATHS.safe);
    expect(server.arrivals).toHaveLength(1);
    expect([error?.code, error?.metadata.get('grpc-status-details-bin')]).toEqual([status.UNAVAILABLE, [garbage]]);
    expect(error?.details).toMatch(/^down \(gave up after 1 attempt: the server's error details can't be read;/);
  });

  test('what a server itself calls INTERNAL, UNKNOWN or CANCELLED is an answer', async () => {
    for (const code of [status.INTERNAL, status.UNKNOWN, status.CANCELLED]) {
      const { server, client } = await setUp([fail(code, 'Call cancelled')]);
      const { error } = await client.call(PATHS.safe);
      expect([error?.code, error?.details, server.arrivals.length]).toEqual([code, 'Call cancelled', 1]);
    }
  });
});

describe('a keyless call of an unknown level', () => {
  const eager = { maxAttempts: 50, initialBackoffMs: 1, maxBackoffMs: 1 };

  async function expectOne(path: string, metadata: Metadata, requestIdName = 'request-id'): Promise<Outcome> {
    const { server, client, events } = await setUp([down, succeed('twice')], { ...eager, requestIdName });
    const outcome = await client.call(path, { metadata });
    expect(server.arrivals).toHaveLength(1);
    expect(outcome.error).toMatchObject({ code: status.UNAVAILABLE });
    expect(outcome.error?.details).toMatch(/^retry refused: no request-id\. .* The error was: down$/);
    expect(events).toContainEqual({ type: 'retry_refused', path, reason: 'no_request_id' });
    return outcome;
  }

  test('is sent once and says how to repair it', async () => {
    const { error } = await expectOne(PATHS.unknown, new Metadata());
    expect(error?.details).toContain(`Send metadata request-id with ${PATHS.unknown}: one UUID per intent`);
  });

  test('is sent once where the registry does not know the method', async () => {
    await expectOne(PATHS.unregistered, new Metadata());
  });

  test.each([
    ['empty', ''],
    ['blank', ' '],
    ['padded', `${ID} `],
    ['malformed', 'not-a-uuid'],
    ['doubled', `${ID}, ${ID}`],
    ['nil', '00000000-0000-0000-0000-000000000000'],
  ])('is not what a call with a key that is %s is: it is refused before anything is sent', async (_, key) => {
    const { server, client } = await setUp([succeed('unprotected')]);
    const { error } = await client.call(PATHS.unknown, { metadata: metadataOf({ 'request-id': key }) });
    expect(error?.code).toBe(status.INVALID_ARGUMENT);
    expect(error?.details).toMatch(
      /^request-id of \/payments.v1.PaymentsService\/CreatePayment: expected .*; nothing was sent$/,
    );
    expect(error && readCallFailure(error)).toMatchObject({ attempts: 0, why: 'unusable_key', outcomeUnknown: false });
    expect(server.arrivals).toHaveLength(0);
  });

  test('is what a call with its key under another name is', async () => {
    const { error } = await expectOne(PATHS.unknown, keyed(), 'intent-id');
    expect(error?.details).toContain('Send metadata intent-id with');
  });

  test('gets an answer that is none of our business as it is', async () => {
    const { client } = await setUp([refuse('REQUEST_ID_MISSING')]);
    const { error } = await client.call(PATHS.unknown);
    expect([error?.code, error?.details]).toEqual([status.INVALID_ARGUMENT, 'refused']);
  });
});

test('a policy that ignores keys leaves nothing that a key could protect', async () => {
  const ignoring = { ...policies, get: (path: string) => ignored(path), all: () => policies.all() };
  const ignored = (path: string) => {
    const policy = policies.get(path);
    return policy && { ...policy, key: 'IGNORED' as const };
  };
  const { server, client } = await setUp([down], { policies: ignoring });
  const { error } = await client.call(PATHS.unknown, { metadata: keyed() });
  expect(server.arrivals).toHaveLength(1);
  expect(error?.details).toContain('ignores keys');
});
