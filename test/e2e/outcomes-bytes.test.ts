import { createHash, randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { CreatePaymentResponse } from '../../src/gen/proto/payments/v1/payments';
import { answerOfSize } from '../support/answer-bytes';
import { type AttemptService, recordPayment, startAttemptService } from '../support/attempt-service';

const MIB = 1024 * 1024;

describe('the bytes of an answer (design 4.8, cases H2 and H5)', () => {
  let service: AttemptService;
  let runs: number;

  beforeAll(async () => {
    service = await startAttemptService({ policy: { maxResponseBytes: MIB } });
  });

  beforeEach(async () => {
    runs = 0;
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  afterAll(() => service.stop());

  const answerWith = (answer: CreatePaymentResponse): void =>
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          runs += 1;
          await recordPayment(tx, request, attempt);
          return answer;
        }),
    });

  it.each([0, 2, 127, 4_095, 4_096, 4_097, 8_191, 8_192, 8_193, MIB])(
    'are the same on the wire, in the record and in every replay: %d of them',
    async (size) => {
      const answer = answerOfSize(size);
      const bytes = Buffer.from(CreatePaymentResponse.encode(answer).finish());
      answerWith(answer);
      const requestId = randomUUID();

      for (const expected of [[], ['true'], ['true']]) {
        const told = await service.pay({ requestId });
        expect(told.code).toBe(status.OK);
        expect(told.bytes?.equals(bytes)).toBe(true);
        expect(told.trailers.get('idempotent-replayed')).toEqual(expected);
      }
      expect(bytes).toHaveLength(size);
      const stored = await service.database.rows(
        `SELECT octet_length(response) AS size, encode(sha256(response), 'hex') AS hash FROM idempotency_record`,
      );
      expect(stored).toEqual([{ size, hash: createHash('sha256').update(bytes).digest('hex') }]);
      expect(runs).toBe(1);
      expect(await service.database.count('payments')).toBe(1);
    },
  );

  it('are all 256 values in these tests', () => {
    expect(new Set(CreatePaymentResponse.encode(answerOfSize(4_096)).finish()).size).toBe(256);
  });

  it('may be none at all: the state decides, not their presence', async () => {
    answerWith({ payment: undefined });
    const requestId = randomUUID();
    await service.pay({ requestId });
    expect(await service.database.rows('SELECT state, octet_length(response) AS size FROM idempotency_record')).toEqual(
      [{ state: 'completed', size: 0 }],
    );
    const retries = [
      await service.pay({ requestId }),
      await service.pay({ requestId }),
      await service.pay({ requestId }),
    ];
    for (const retry of retries) {
      expect(retry.code).toBe(status.OK);
      expect(retry.bytes).toHaveLength(0);
      expect(retry.trailers.get('idempotent-replayed')).toEqual(['true']);
    }
    expect(runs).toBe(1);
  });

  it('are those of the moment of the commit, whatever the handler does to its answer afterwards', async () => {
    service.handle({
      createPayment: async (request, attempt) => {
        const response = await attempt.complete((tx) => recordPayment(tx, request, attempt));
        response.payment.orderId = 'changed';
        return response;
      },
    });
    const requestId = randomUUID();
    const first = await service.pay({ requestId });
    expect(first.response).toMatchObject({ payment: { order_id: 'order-1' } });
    expect((await service.pay({ requestId })).bytes).toEqual(first.bytes);
  });
});
