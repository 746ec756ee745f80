import { randomUUID } from 'node:crypto';
import { ServerInterceptingCall, type ServerInterceptor, Server, status } from '@grpc/grpc-js';
import { PaymentsServiceService } from '../../src/gen/proto/payments/v1/payments';
import { StatusError } from '../../src/idempotency/index';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { deferred } from '../support/deferred';
import { until } from '../support/until';

const KEY = randomUUID();
const PATH = '/payments.v1.PaymentsService/CreatePayment';

describe('a call that another interceptor holds back once it is claimed (case J11)', () => {
  let held = deferred();
  let letGo = deferred();
  let service: AttemptService;
  let runs = 0;

  /** Stands behind that of the library, nearer to the handlers. */
  const holding: ServerInterceptor = (_, call) =>
    new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveHalfClose: (pass) => {
            held.resolve();
            void letGo.promise.then(pass);
          },
        }),
    });

  beforeAll(async () => {
    service = await startAttemptService({
      policy: { enforcement: 'OBSERVE' },
      assemble: (idempotency, handlers) => {
        const server = new Server({ interceptors: [idempotency.interceptor, holding] });
        idempotency.addService(server, PaymentsServiceService, handlers);
        return server;
      },
    });
  });
  beforeEach(() => {
    [held, letGo, runs] = [deferred(), deferred(), 0];
  });
  afterAll(() => service.stop());

  it('and whose caller waits keeps its claim: it is run once, and answered', async () => {
    service.handle({
      createPayment: (request, attempt) => {
        runs += 1;
        return payAndComplete(request, attempt);
      },
    });
    const paid = service.pay();
    await held.promise;
    // A claim that was given back would be gone by the time that another statement was answered.
    await service.connections.store.$queryRawUnsafe('SELECT 1');
    expect(await service.database.count(`idempotency_record WHERE state = 'claimed'`)).toBe(1);

    letGo.resolve();

    expect((await paid).code).toBe(status.OK);
    expect(runs).toBe(1);
    expect(service.events.filter(({ type }) => type === 'call')).toMatchObject([{ code: status.OK }]);
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  it('and whose caller hangs up then: its handler is never started, and the key is free again', async () => {
    service.handle({
      createPayment: (request, attempt) => {
        runs += 1;
        return payAndComplete(request, attempt);
      },
    });
    const hangUp = new AbortController();
    const cut = service.pay({ requestId: KEY, signal: hangUp.signal });
    await held.promise;
    expect(await service.database.count('idempotency_record')).toBe(1);

    hangUp.abort();

    expect((await cut).code).toBe(status.CANCELLED);
    await until('the key is given back', async () => (await service.database.count('idempotency_record')) === 0, 4_000);
    expect(service.events).toContainEqual(expect.objectContaining({ type: 'released' }));
    // A keyed call has its line all the same (design 3.5).
    const lines = service.events.filter(({ type }) => type === 'call');
    expect(lines).toMatchObject([{ outcome: 'claimed', code: status.CANCELLED, requestId: KEY, scope: 'account-1' }]);
    letGo.resolve();
    await service.idempotency.idle();
    expect(runs).toBe(0);
    expect(await service.database.count('payments')).toBe(0);
  });

  it('and whose caller hangs up then ends the lease only, where the request is half finished', async () => {
    service.handle({
      createPayment: async (_, attempt) => {
        await attempt.phase('draft', async () => undefined);
        throw new StatusError(status.NOT_FOUND, 'not now');
      },
    });
    const first = service.pay({ requestId: KEY });
    letGo.resolve();
    expect((await first).code).toBe(status.UNAVAILABLE);
    service.events.length = 0;
    [held, letGo] = [deferred(), deferred()];
    const hangUp = new AbortController();
    const cut = service.pay({ requestId: KEY, signal: hangUp.signal });
    await held.promise;

    hangUp.abort();

    expect((await cut).code).toBe(status.CANCELLED);
    await until('the lease is ended', async () => service.events.some(({ type }) => type === 'lease_ended'), 4_000);
    expect(service.events).toContainEqual({ type: 'lease_ended', path: PATH, requestId: KEY });
    expect(service.events.filter(({ type }) => type === 'released')).toEqual([]);
    expect(await service.database.count(`idempotency_record WHERE state = 'claimed' AND lease_until <= now()`)).toBe(1);
    letGo.resolve();
    await service.idempotency.idle();
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  it('and whose caller hangs up then has one line also where nothing was claimed for it', async () => {
    service.handle({ createPayment: () => Promise.reject(new Error('not to be run')) });
    const hangUp = new AbortController();
    const cut = service.pay({ requestId: undefined, signal: hangUp.signal });
    await held.promise;
    hangUp.abort();
    expect((await cut).code).toBe(status.CANCELLED);
    await until('its line is there', async () => service.events.some(({ type }) => type === 'call'));
    letGo.resolve();
    await service.idempotency.idle();
    expect(service.events).toMatchObject([
      { type: 'admitted', outcome: 'missing_key' },
      { type: 'call', outcome: 'missing_key', code: status.CANCELLED, observed: true },
    ]);
  });
});
