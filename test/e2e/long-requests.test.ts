import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { paymentRequest } from '../support/payment-requests';
import { rawCall } from '../support/raw-call';
import { useService } from '../support/use-service';

describe('a request that is too long', () => {
  const used = useService();

  const pay = (requestId: string, noteBytes: number): ReturnType<typeof used.client.call> =>
    used.client.call({
      ...{ method: 'CreatePayment', requestId },
      request: paymentRequest({ metadata: { note: 'x'.repeat(noteBytes) } }),
    });

  it('of 300 KiB is RESOURCE_EXHAUSTED, and nothing is recorded', async () => {
    const requestId = randomUUID();
    expect((await pay(requestId, 300 * 1024)).code).toBe(status.RESOURCE_EXHAUSTED);
    expect(await used.database.count(`idempotency_record WHERE request_id = '${requestId}'`)).toBe(0);
    expect(await used.database.count('payments')).toBe(0);
  });

  it('is told from one of 255 KiB, which the service looks at', async () => {
    expect((await pay(randomUUID(), 255 * 1024)).code).toBe(status.INVALID_ARGUMENT);
  });

  it('of too many fields is INVALID_ARGUMENT, and nothing is recorded', async () => {
    const requestId = randomUUID();
    const bytes = Buffer.alloc(2 * 100_001, Uint8Array.of(0x2a, 0));
    const answer = await rawCall(used.service.grpcPort, '/payments.v1.PaymentsService/CreatePayment', [bytes], {
      'request-id': requestId,
    });
    expect(answer.code).toBe(status.INVALID_ARGUMENT);
    expect(answer.message).toContain('holds too many fields');
    expect(used.service.lines.filter((line) => line['requestId'] === requestId)).toMatchObject([
      {
        level: 'warn',
        msg: 'keyed call',
        outcome: 'malformed_key',
        code: 'InvalidArgument',
        reason: 'REQUEST_UNREADABLE',
      },
    ]);
    expect(await used.service.metrics()).toMatch(/^idempotency_requests_total\{.*outcome="malformed_key"\} 1$/m);
    expect(await used.database.count(`idempotency_record WHERE request_id = '${requestId}'`)).toBe(0);
  });
});
