import { status } from '@grpc/grpc-js';
import { reject, StatusError } from '../../src/idempotency/index';
import { type AttemptService, recordPayment, startAttemptService } from '../support/attempt-service';

const DECLINED = new StatusError(status.FAILED_PRECONDITION, 'the card was declined: çok', [], {
  reason: 'CARD_DECLINED',
  domain: 'payments.v1',
  metadata: { card: 'tok_1' },
});

describe('a handler that completes with a refusal', () => {
  let service: AttemptService;
  let runs = 0;

  beforeAll(async () => {
    service = await startAttemptService();
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          runs += 1;
          await recordPayment(tx, request, attempt);
          return reject(DECLINED);
        }),
    });
  });

  afterAll(() => service.stop());

  it('has it recorded with its effects and replayed with code, text and details, without running again', async () => {
    const requestId = '0b0d1a5e-52a8-4f4e-8b6c-0a3c5e7d9f10';
    const first = await service.pay({ requestId });
    const second = await service.pay({ requestId });

    for (const told of [first, second]) {
      expect(told).toMatchObject({ code: status.FAILED_PRECONDITION, details: 'the card was declined: çok' });
      expect(told.error).toMatchObject({ reason: 'CARD_DECLINED', domain: 'payments.v1' });
      expect(told.error.metadata.get('card')).toBe('tok_1');
      expect(told.trailers.get('idempotency-expires-at')).toHaveLength(1);
    }
    expect(second.trailers.get('grpc-status-details-bin')).toEqual(first.trailers.get('grpc-status-details-bin'));
    expect(first.trailers.get('idempotent-replayed')).toEqual([]);
    expect(second.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(runs).toBe(1);
    expect(await service.database.count('payments')).toBe(1);
  });
});
