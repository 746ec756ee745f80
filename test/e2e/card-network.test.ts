import { randomUUID } from 'node:crypto';
import { credentials, status } from '@grpc/grpc-js';
import { readCardNetworkEnvironment } from '../../src/card-network/environment';
import { type NetworkFault, readFaults } from '../../src/card-network/faults';
import { type CardNetwork, startCardNetwork } from '../../src/card-network/start-card-network';
import { descriptorSet } from '../../src/gen/descriptor-set';
import {
  type AuthorizeRequest,
  AuthorizationState,
  CardNetworkServiceService,
} from '../../src/gen/proto/cardnetwork/v1/cardnetwork';
import {
  type CallEnd,
  createPromiseClient,
  loadPolicies,
  newRequestId,
  type PromiseClient,
} from '../../src/idempotency/index';
import { createTestDatabase, type TestDatabase } from '../support/postgres';

describe('the card network simulator', () => {
  let database: TestDatabase;
  let network: CardNetwork;
  let client: PromiseClient<typeof CardNetworkServiceService>;
  const faults: NetworkFault[] = [];
  const declines: string[] = [];
  let crashes = 0;

  beforeAll(async () => {
    database = await createTestDatabase();
    network = await startCardNetwork({
      connectionString: database.connectionString,
      nextFault: () => faults.shift() ?? { kind: 'ok' },
      decide: () => declines.shift(),
      crash: () => (crashes += 1),
    });
    client = createPromiseClient(CardNetworkServiceService, network.address, {
      ...{ policies: loadPolicies(descriptorSet), credentials: credentials.createInsecure() },
      ...{ attemptTimeoutMs: 1_000, initialBackoffMs: 1 },
    });
  });
  afterEach(() => expect(faults).toEqual([]));
  afterAll(async () => {
    client.close();
    await network.stop();
    await database.drop();
  });

  const request = (): AuthorizeRequest => ({
    ...{ reference: `reference-${randomUUID()}`, amountMinor: 1_250n, currency: 'EUR', paymentMethod: 'tok_visa' },
  });
  const chargesOf = ({ reference }: AuthorizeRequest) =>
    database.count(`card_network_authorizations WHERE reference = '${reference}'`);

  it('holds an amount once per key, and shows and lists it', async () => {
    const asked = request();
    const requestId = newRequestId();
    const ends: CallEnd[] = [];
    const onEnd = (end: CallEnd) => void ends.push(end);
    const first = await client.authorize(asked, { requestId, onEnd });
    const again = await client.authorize(asked, { requestId, onEnd });
    const { authorization } = first;
    expect(again).toEqual(first);
    expect(ends.map(({ replayed }) => replayed)).toEqual([false, true]);
    expect(authorization).toMatchObject({
      reference: asked.reference,
      amountMinor: 1_250n,
      requestId,
      refundedMinor: 0n,
    });
    expect(authorization?.state).toBe(AuthorizationState.AUTHORIZATION_STATE_AUTHORIZED);
    expect(await chargesOf(asked)).toBe(1);
    const { authorizationId = '' } = authorization ?? {};
    expect(await client.getAuthorization({ authorizationId })).toMatchObject({ authorization });
  });

  it('keeps keys for longer than a payment may be resumed', () => {
    const policies = loadPolicies(descriptorSet);
    const payment = policies.get('/payments.v1.PaymentsService/CreatePayment');
    for (const method of ['Authorize', 'Refund']) {
      const policy = policies.get(`/cardnetwork.v1.CardNetworkService/${method}`);
      expect(policy).toMatchObject({ level: 'UNKNOWN', key: 'REQUIRED' });
      const resumableMs = (payment?.maxKeyAgeMs ?? NaN) + (payment?.retentionMs ?? NaN);
      expect(policy?.maxKeyAgeMs).toBeGreaterThanOrEqual(resumableMs);
      expect(policy?.retentionMs).toBeGreaterThanOrEqual(resumableMs);
    }
  });

  it('declines as an answer, the same for ever under the same key', async () => {
    const asked = request();
    const requestId = newRequestId();
    declines.push('stolen_card');
    const first = await client.authorize(asked, { requestId });
    expect(first.authorization).toMatchObject({
      state: AuthorizationState.AUTHORIZATION_STATE_DECLINED,
      declineReason: 'stolen_card',
    });
    expect(await client.authorize(asked, { requestId })).toEqual(first);
    expect(await chargesOf(asked)).toBe(1);
  });

  it('gives back what was held, once per key, and not what was declined', async () => {
    const { authorization } = await client.authorize(request(), { requestId: newRequestId() });
    const { authorizationId = '' } = authorization ?? {};
    const requestId = newRequestId();
    const first = await client.refund({ authorizationId, amountMinor: 250n }, { requestId });
    expect(await client.refund({ authorizationId, amountMinor: 250n }, { requestId })).toEqual(first);
    const shown = await client.getAuthorization({ authorizationId });
    expect(shown.authorization?.refundedMinor).toBe(250n);
    declines.push('stolen_card');
    const declined = await client.authorize(request(), { requestId: newRequestId() });
    const other = { authorizationId: declined.authorization?.authorizationId ?? '', amountMinor: 1n };
    await expect(client.refund(other, { requestId: newRequestId() })).rejects.toMatchObject({ code: status.NOT_FOUND });
  });

  it('lists by reference, key and time, oldest first, a page at a time', async () => {
    const made = [];
    for (let time = 0; time < 3; time += 1) {
      made.push(
        (await client.authorize({ ...request(), reference: 'one order' }, { requestId: newRequestId() })).authorization,
      );
    }
    const all = { pageSize: 2, pageToken: '', requestId: '', reference: 'one order', createdSince: undefined };
    const first = await client.listAuthorizations(all);
    const second = await client.listAuthorizations({ ...all, pageToken: first.nextPageToken });
    expect([...first.authorizations, ...second.authorizations]).toEqual(made);
    expect(second.nextPageToken).toBe('');
    const byKey = await client.listAuthorizations({ ...all, requestId: made[1]?.requestId ?? '' });
    expect(byKey.authorizations).toEqual([made[1]]);
    const later = { seconds: (made[2]?.createTime?.seconds ?? 0n) + 60n, nanos: 0 };
    expect((await client.listAuthorizations({ ...all, createdSince: later })).authorizations).toEqual([]);
    const faulty = client.listAuthorizations({ ...all, pageSize: 1_001, pageToken: 'x' });
    await expect(faulty).rejects.toMatchObject({ code: status.INVALID_ARGUMENT });
  });

  it('refuses a request that names every field at fault, and keeps no record of it', async () => {
    const faulty = { reference: '', amountMinor: 0n, currency: 'eur', paymentMethod: '' };
    const failed = client.authorize(faulty, { requestId: newRequestId() });
    await expect(failed).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: expect.stringMatching(/reference: .*; amount_minor: .*; currency: .*; payment_method: /) as unknown,
    });
  });

  it.each<readonly [string, NetworkFault, number]>([
    ['an outage', { kind: 'outage' }, 0],
    ['a lost answer', { kind: 'lost_answer' }, 1],
    ['no answer', { kind: 'silence' }, 1],
    ['a delay', { kind: 'delay', ms: 20 }, 0],
  ])('lets %s happen on the way, and nothing twice', async (_, fault, chargedBefore) => {
    const asked = request();
    const requestId = newRequestId();
    faults.push(fault);
    const once = { requestId, timeoutMs: 400, attemptTimeoutMs: 400 };
    const first = await client.authorize(asked, { ...once, onEnd: () => undefined }).catch((error: unknown) => error);
    if (fault.kind === 'silence') expect(first).toMatchObject({ code: status.DEADLINE_EXCEEDED });
    expect(await chargesOf(asked)).toBeGreaterThanOrEqual(chargedBefore);
    await client.authorize(asked, { requestId });
    expect(await chargesOf(asked)).toBe(1);
  });

  it('answers nonsense where it is told to, although it has charged', async () => {
    const asked = request();
    faults.push({ kind: 'nonsense' });
    expect((await client.authorize(asked, { requestId: newRequestId() })).authorization).toBeUndefined();
    expect(await chargesOf(asked)).toBe(1);
  });

  it.each<readonly [NetworkFault['kind'], number]>([
    ['crash_before', 0],
    ['crash_after', 1],
  ])('ends its process at %s', async (kind, charged) => {
    const asked = request();
    const before = crashes;
    faults.push({ kind } as NetworkFault);
    const once = { requestId: newRequestId(), timeoutMs: 400, attemptTimeoutMs: 400 };
    await expect(client.authorize(asked, once)).rejects.toMatchObject({ code: status.DEADLINE_EXCEEDED });
    expect(crashes).toBe(before + 1);
    expect(await chargesOf(asked)).toBe(charged);
  });
});

describe('the settings of the simulator', () => {
  it('read a script of faults, one for each call in turn', () => {
    const next = readFaults('ok*2, lost_answer,delay:500*');
    const kinds = Array.from({ length: 5 }, () => next?.());
    const delay = { kind: 'delay', ms: 500 };
    expect(kinds).toEqual([{ kind: 'ok' }, { kind: 'ok' }, { kind: 'lost_answer' }, delay, delay]);
    const used = readFaults('outage');
    expect([used?.(), used?.()]).toEqual([{ kind: 'outage' }, { kind: 'ok' }]);
  });

  it.each(['', 'slow', 'delay', 'ok:5', 'ok**', 'ok,,ok', 'delay:x'])('refuse the script %j', (script) => {
    expect(readFaults(script)).toBeUndefined();
  });

  it('name every variable at fault, and never the value of a secret', () => {
    const environment = { CARD_NETWORK_PORT: '70000', CARD_NETWORK_DECLINES: '-1', CARD_NETWORK_FAULTS: 'slow' };
    expect(() => readCardNetworkEnvironment(environment)).toThrow(
      /DATABASE_URL: .*CARD_NETWORK_PORT is "70000".*CARD_NETWORK_DECLINES is "-1".*CARD_NETWORK_FAULTS is "slow"/s,
    );
    const withUrl = { ...environment, DATABASE_URL: 'postgresql://me:secret@127.0.0.1/x' };
    expect(() => readCardNetworkEnvironment(withUrl)).toThrow(/^(?!.*secret).*CARD_NETWORK_PORT/s);
  });

  it('decline so many cards, then none', () => {
    const { decide } = readCardNetworkEnvironment({ DATABASE_URL: 'postgresql://x', CARD_NETWORK_DECLINES: '2' });
    const asked = { reference: 'r', amountMinor: 1n, currency: 'EUR', paymentMethod: 't' };
    expect([decide(asked), decide(asked), decide(asked)]).toEqual([
      'insufficient_funds',
      'insufficient_funds',
      undefined,
    ]);
  });
});
