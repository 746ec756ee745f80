import { randomUUID } from 'node:crypto';
import { credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { descriptorSet } from '../../src/gen/descriptor-set';
import type { Timestamp } from '../../src/gen/proto/google/protobuf/timestamp';
import {
  createPromiseClient,
  loadPolicies,
  type PromiseClient,
  readErrorDetails,
  RequestsServiceService,
  RequestState,
} from '../../src/idempotency/index';
import { createOutbox } from '../../src/outbox/outbox';
import { createStandInAuthorizer } from '../../src/payments/authorizer';
import { createPaymentsService } from '../../src/payments/payments-service';
import { type AttemptService, startAttemptService } from '../support/attempt-service';
import { createAuthorizerGate } from '../support/authorizer-gate';
import { datedKey } from '../support/claim-requests';
import { paymentRequest } from '../support/payment-requests';
import { rawClient } from '../support/scripted-server';
import { endLeases } from '../support/stored-record';
import { useService } from '../support/use-service';

type RequestsClient = PromiseClient<RequestsServiceService>;

const METHOD = '/payments.v1.PaymentsService/CreatePayment';
const HOUR_MS = 3_600_000;

const requestsClient = (port: number): RequestsClient =>
  createPromiseClient(RequestsServiceService, `127.0.0.1:${port}`, {
    credentials: credentials.createInsecure(),
    policies: loadPolicies(descriptorSet),
  });

const msOf = (time: Timestamp | undefined): number | undefined =>
  time && Number(time.seconds) * 1_000 + time.nanos / 1_000_000;

describe('GetRequest', () => {
  const gate = createAuthorizerGate();
  const used = useService({ authorizer: gate.authorizer });
  let requests: RequestsClient;

  beforeAll(() => {
    requests = requestsClient(used.service.grpcPort);
  });

  beforeEach(() => used.database.rows('TRUNCATE payments, idempotency_record'));

  afterAll(() => requests.close());

  const ask = (requestId: string, method = METHOD) => requests.getRequest({ method, requestId });
  const pay = (requestId: string, change: Readonly<Record<string, unknown>> = {}) =>
    used.client.call({ method: 'CreatePayment', request: paymentRequest(change), requestId });
  /** What the database says of the only record. */
  const recorded = async () => {
    const [row] = await used.database.rows<{ created: number; completed: number | null }>(
      `SELECT floor(extract(epoch FROM created_at) * 1000)::float8 AS created,
         floor(extract(epoch FROM completed_at) * 1000)::float8 AS completed FROM idempotency_record`,
    );
    return row;
  };
  const payOnce = (requestId: string, change: Readonly<Record<string, unknown>> = {}) => {
    const paid = pay(requestId, change);
    gate.answer(gate.timesAsked() + 1);
    return paid;
  };

  it('knows nothing of a key that never came', async () => {
    expect(await ask(randomUUID())).toMatchObject({
      state: RequestState.REQUEST_STATE_UNKNOWN,
      ...{ claimTime: undefined, resource: '', statusCode: 0, statusMessage: '' },
      ...{ completeTime: undefined, expireTime: undefined },
    });
  });

  it('shows a request in progress, then completed with what it is about and until when its answer is kept', async () => {
    const requestId = randomUUID();
    const time = gate.timesAsked() + 1;
    const paid = pay(requestId);
    await gate.asked(time);
    const running = await ask(requestId);
    gate.answer(time);
    const { response, trailers } = await paid;
    const completed = await ask(requestId);
    const times = await recorded();

    const resource = `payments/${response?.payment.payment_id}`;
    expect(running).toMatchObject({ state: RequestState.REQUEST_STATE_IN_PROGRESS, resource, statusCode: 0 });
    expect([running.completeTime, running.expireTime]).toEqual([undefined, undefined]);
    expect(completed).toMatchObject({
      state: RequestState.REQUEST_STATE_COMPLETED,
      ...{ resource, statusCode: status.OK, statusMessage: '' },
    });
    expect([msOf(running.claimTime), msOf(completed.claimTime)]).toEqual([times?.created, times?.created]);
    expect(msOf(completed.completeTime)).toBe(times?.completed);
    expect(msOf(completed.expireTime)).toBe(Date.parse(String(trailers.get('idempotency-expires-at')[0])));
  });

  it('finds a key in upper case, as the service does', async () => {
    const requestId = randomUUID();
    await payOnce(requestId);
    expect(await ask(requestId.toUpperCase())).toMatchObject({ state: RequestState.REQUEST_STATE_COMPLETED });
  });

  it('shows a recorded refusal with its code and text, and the payment that stood in the way', async () => {
    const [first, second] = [randomUUID(), randomUUID()];
    const { response } = await payOnce(first, { order_id: 'order-1' });
    const refused = await pay(second, { order_id: 'order-1' });
    expect(await ask(second)).toMatchObject({
      state: RequestState.REQUEST_STATE_COMPLETED,
      resource: `payments/${response?.payment.payment_id}`,
      ...{ statusCode: status.ALREADY_EXISTS, statusMessage: refused.details },
    });
  });

  it('knows nothing of a request that failed and gave its key back', async () => {
    const requestId = randomUUID();
    expect(await pay(requestId, { amount_minor: '0' })).toMatchObject({ code: status.INVALID_ARGUMENT });
    expect(await ask(requestId)).toMatchObject({ state: RequestState.REQUEST_STATE_UNKNOWN });
  });

  it('shows a request as in progress that failed when half of it was done: its retry goes on from there', async () => {
    const requestId = randomUUID();
    const time = gate.timesAsked() + 1;
    gate.fail(time);
    expect(await pay(requestId)).toMatchObject({ code: status.INTERNAL });
    expect(await ask(requestId)).toMatchObject({ state: RequestState.REQUEST_STATE_IN_PROGRESS });
  });

  it('keeps apart two methods that were given the same key', async () => {
    const requestId = randomUUID();
    await payOnce(requestId);
    const other = await ask(requestId, '/payments.v1.PaymentsService/UpdatePayment');
    expect(other).toMatchObject({ state: RequestState.REQUEST_STATE_UNKNOWN });
  });

  it('goes on from one owner to the next: in progress since the first claim, completed by the one who took over', async () => {
    const requestId = randomUUID();
    const request = paymentRequest();
    const time = gate.timesAsked() + 1;
    const overtaken = pay(requestId, request);
    await gate.asked(time);
    const since = (await ask(requestId)).claimTime;
    await endLeases(used.database);
    const abandoned = await ask(requestId);
    const taken = pay(requestId, request);
    await gate.asked(time + 1);
    const running = await ask(requestId);
    gate.answer(time + 1);
    const { response } = await taken;
    gate.answer(time);
    await overtaken;

    for (const shown of [abandoned, running]) {
      expect(shown).toMatchObject({ state: RequestState.REQUEST_STATE_IN_PROGRESS, claimTime: since });
    }
    expect(await ask(requestId)).toMatchObject({
      state: RequestState.REQUEST_STATE_COMPLETED,
      claimTime: since,
      resource: `payments/${response?.payment.payment_id}`,
    });
  });

  it('calls a key expired that is too old to be run, but not one of an hour ago', async () => {
    const [old, recent] = [datedKey(Date.now() - 25 * HOUR_MS), datedKey(Date.now() - HOUR_MS)];
    expect(await ask(old)).toMatchObject({ state: RequestState.REQUEST_STATE_EXPIRED, claimTime: undefined });
    expect(await ask(recent)).toMatchObject({ state: RequestState.REQUEST_STATE_UNKNOWN });
  });

  it('calls a key expired whose day was dropped', async () => {
    const key = datedKey(Date.now() - HOUR_MS);
    await used.database.rows('UPDATE idempotency_retention SET dropped_through = now()::date');
    const shown = await ask(key);
    await used.database.rows(`UPDATE idempotency_retention SET dropped_through = '1970-01-01'`);
    expect(shown).toMatchObject({ state: RequestState.REQUEST_STATE_EXPIRED });
  });

  test.each([
    ['expired', RequestState.REQUEST_STATE_EXPIRED],
    ['parked', RequestState.REQUEST_STATE_PARKED],
  ])('shows a record that is %s', async (state, expected) => {
    const requestId = randomUUID();
    const time = gate.timesAsked() + 1;
    const paid = pay(requestId);
    await gate.asked(time);
    await used.database.rows(`UPDATE idempotency_record SET state = $1, resource = 'payments/1'`, [state]);
    const shown = await ask(requestId);
    gate.answer(time);
    await paid;
    expect(shown).toMatchObject({ state: expected, resource: 'payments/1', claimTime: {}, completeTime: undefined });
  });

  test.each<[string, { method?: string; requestId?: string }, string, RegExp]>([
    ['a method that takes no keys', { method: METHOD.replace('Create', 'Get') }, 'method', /CreatePayment, .*Update/],
    ['a method without its slash', { method: METHOD.slice(1) }, 'method', /expected a method that takes keys: \//],
    ['no method', { method: '' }, 'method', /^expected a method that takes keys/],
    ['a key of another form', { requestId: 'order-1' }, 'request_id', /^expected a UUID$/],
    ['two keys', { requestId: `${randomUUID()},${randomUUID()}` }, 'request_id', /^expected one value/],
    ['no key', { requestId: '' }, 'request_id', /^expected the key/],
  ])('refuses %s', async (_, { method, requestId = randomUUID() }, field, description) => {
    const refused = await ask(requestId, method).catch((error: ServiceError) => error);
    if (!(refused instanceof Error)) throw new Error('expected a refusal');
    expect(refused.code).toBe(status.INVALID_ARGUMENT);
    expect(readErrorDetails(refused.metadata).violations).toMatchObject([
      { field, description: expect.stringMatching(description) as unknown },
    ]);
  });

  it('is served, counted and probed as the payments are', async () => {
    const health = rawClient(`127.0.0.1:${used.service.grpcPort}`, []);
    const name = Buffer.from('idempotency.v1.RequestsService');
    const message = Buffer.concat([Buffer.from([0x0a, name.length]), name]);
    const { text } = await health.call('/grpc.health.v1.Health/Check', { message });
    health.client.close();
    // status: SERVING
    expect(text).toBe('\x08\x01');
    expect(await used.service.metrics()).toMatch(/^grpc_server_handled_total\{.*grpc_method="GetRequest"/m);
  });
});

describe('GetRequest, asked by another account', () => {
  let service: AttemptService;
  let requests: RequestsClient;

  beforeAll(async () => {
    service = await startAttemptService({
      principal: ({ metadata }) => metadata.get('account')[0]?.toString(),
      withRequests: true,
    });
    service.handle(
      createPaymentsService({
        prisma: service.connections.business,
        authorizer: createStandInAuthorizer(),
        outbox: createOutbox(),
        onPaymentCreated: () => undefined,
      }),
    );
    requests = requestsClient(service.port);
  });

  afterAll(async () => {
    requests.close();
    await service.stop();
  });

  it('knows nothing of a key that is not its own', async () => {
    const requestId = randomUUID();
    await service.pay({ requestId, metadata: { account: 'account-1' } });
    const stateFor = async (account: string) => {
      const metadata = new Metadata();
      metadata.set('account', account);
      return (await requests.getRequest({ method: METHOD, requestId }, { metadata })).state;
    };
    expect(await stateFor('account-1')).toBe(RequestState.REQUEST_STATE_COMPLETED);
    expect(await stateFor('account-2')).toBe(RequestState.REQUEST_STATE_UNKNOWN);
  });
});
