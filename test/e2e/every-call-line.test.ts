import { randomUUID } from 'node:crypto';
import { Metadata, status } from '@grpc/grpc-js';
import { type AdmissionOutcome, readErrorDetails, type ServerEvent } from '../../src/idempotency/index';
import { STATUS_DETAILS } from '../../src/idempotency/wire/metadata';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { rawCall } from '../support/raw-call';

const PATH = '/payments.v1.PaymentsService/CreatePayment';
type CallEvent = Extract<ServerEvent, { type: 'call' }>;

describe('a keyed call that never gets to a claim (design 3.4, 3.5)', () => {
  let service: AttemptService;
  let isStoreBroken = false;

  beforeAll(async () => {
    service = await startAttemptService({
      principal: async ({ metadata }) => {
        const [account] = metadata.get('account').map(String);
        if (account === 'broken') throw new Error('ldap://directory.internal is away');
        if (account === 'slow') await new Promise(() => undefined);
        return account === 'stranger' ? undefined : 'account-1';
      },
      wrapStore: (store) => ({
        ...store,
        claim: (request) => (isStoreBroken ? Promise.reject(new TypeError('broken')) : store.claim(request)),
      }),
    });
  });

  beforeEach(async () => {
    isStoreBroken = false;
    service.handle({ createPayment: payAndComplete });
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  afterAll(() => service.stop());

  /** It is counted once, and has one line, by its key. */
  const expectLine = (requestId: string | undefined, outcome: AdmissionOutcome, line: Partial<CallEvent>): void => {
    const admitted = service.events.filter((event) => event.type === 'admitted');
    expect(admitted.map((event) => event.outcome)).toEqual([outcome]);
    const lines = service.events.filter((event) => event.type === 'call');
    expect(lines).toMatchObject([{ path: PATH, requestId, outcome, published: {}, ...line }]);
    expect(lines[0]).not.toHaveProperty('attempt');
  };

  it.each([
    ['broken', status.INTERNAL, {}],
    ['stranger', status.UNAUTHENTICATED, { reason: 'PRINCIPAL_MISSING' }],
  ])('has one line where its caller is not known: the account is %s', async (account, code, line) => {
    const requestId = randomUUID();
    expect((await service.pay({ requestId, metadata: { account } })).code).toBe(code);
    expectLine(requestId, 'principal_missing', { code, scope: undefined, ...line });
    for (const event of service.events.filter(({ type }) => type === 'fault')) {
      expect(event).toMatchObject({ requestId, what: 'the call could not be admitted' });
    }
  });

  it('has one line where its caller left before it was known', async () => {
    const requestId = randomUUID();
    const answer = await service.pay({ requestId, metadata: { account: 'slow' }, deadlineMs: 200 });
    expect(answer.code).toBe(status.DEADLINE_EXCEEDED);
    await service.idempotency.idle();
    expectLine(requestId, 'principal_missing', { code: status.CANCELLED });
  });

  it('has one line without a key where what it brings is none', async () => {
    await service.pay({ requestId: 'order-1', metadata: { account: 'stranger' } });
    expectLine(undefined, 'principal_missing', { code: status.UNAUTHENTICATED });
  });

  it('has one line where its request can not be compared, and its caller is told what to do', async () => {
    const requestId = randomUUID();
    const tooManyFields = Buffer.alloc(2 * 100_001, Uint8Array.of(0x2a, 0));
    const answer = await rawCall(service.port, PATH, [tooManyFields], { 'request-id': requestId });
    expect(answer.code).toBe(status.INVALID_ARGUMENT);
    expect(answer.message).toMatch(/holds too many fields.*: send it in smaller parts/);
    // As every refusal says to programs.
    const metadata = new Metadata();
    metadata.set(STATUS_DETAILS, Buffer.from(String(answer.headers[STATUS_DETAILS]), 'base64'));
    expect(readErrorDetails(metadata)).toMatchObject({ reason: 'REQUEST_UNREADABLE', domain: 'idempotency.v1' });
    expect(answer.headers['grpc-retry-pushback-ms']).toBe('-1');
    const line = { code: status.INVALID_ARGUMENT, scope: 'account-1', reason: 'REQUEST_UNREADABLE' };
    expectLine(requestId, 'malformed_key', line);
    expect(await service.database.count('idempotency_record')).toBe(0);
  });

  it('has one line where something of ours broke', async () => {
    isStoreBroken = true;
    const requestId = randomUUID();
    expect((await service.pay({ requestId })).code).toBe(status.INTERNAL);
    expectLine(requestId, 'store_unavailable', { code: status.INTERNAL, scope: 'account-1' });
    expect(service.events.filter(({ type }) => type === 'fault')).toMatchObject([{ requestId }]);
  });

  it('is counted once where something broke after it was counted', async () => {
    const requestId = randomUUID();
    await service.pay({ requestId });
    await service.database.rows("UPDATE idempotency_record SET trailers = 'no trailers'");
    service.events.length = 0;
    expect((await service.pay({ requestId })).code).toBe(status.INTERNAL);
    expectLine(requestId, 'replayed', { code: status.INTERNAL, scope: 'account-1' });
  });
});
