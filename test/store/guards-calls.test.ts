import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { type AttemptService, startAttemptService } from '../support/attempt-service';
import { rawCall } from '../support/raw-call';

/** The end of a group that never began. */
const STRAY_END = Uint8Array.of(0x9c, 0x06);

describe('a call at the edges of what is let in', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService();
  });

  afterAll(() => service.stop());

  it('that was resent is let through without a key where its method is idempotent and takes keys all the same (design 4.1)', async () => {
    service.handle({ updatePayment: () => Promise.resolve({ payment: undefined }) });

    const metadata = { 'grpc-previous-rpc-attempts': '1', 'x-envoy-attempt-count': '2' };
    const request = { payment_id: '11111111-1111-4111-8111-111111111111' };

    expect(await service.client.call({ method: 'UpdatePayment', request, metadata })).toMatchObject({
      code: status.OK,
    });
    expect(service.events).toContainEqual(expect.objectContaining({ type: 'admitted', outcome: 'unprotected' }));
  });

  it('whose bytes the service can decode and nobody can compare is the fault of its caller (design 4.4)', async () => {
    service.handle({ createPayment: () => Promise.reject(new Error('never run')) });
    const answer = await rawCall(service.port, '/payments.v1.PaymentsService/CreatePayment', [STRAY_END], {
      'request-id': randomUUID(),
    });

    expect(answer).toMatchObject({ code: status.INVALID_ARGUMENT });
    expect(service.events).not.toContainEqual(expect.objectContaining({ type: 'fault' }));
    expect(await service.database.count('idempotency_record')).toBe(0);
  });

  it('whose function throws runs it once: only what the database chose is run again (design 4.8)', async () => {
    let runs = 0;
    service.handle({
      createPayment: (_, attempt) =>
        attempt.complete(() => {
          runs += 1;
          return Promise.reject(new Error('broken'));
        }),
    });

    expect(await service.pay()).toMatchObject({ code: status.INTERNAL });
    expect(runs).toBe(1);
  });
});
