import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { createAuthorizerGate } from '../support/authorizer-gate';
import { paymentRequest } from '../support/payment-requests';
import { until } from '../support/until';
import { useService } from '../support/use-service';

describe('how the records stand, in /metrics (design 3.4)', () => {
  const gate = createAuthorizerGate();
  const used = useService({ authorizer: gate.authorizer, observeEveryMs: 20 });

  const shows = async (...lines: readonly RegExp[]): Promise<boolean> => {
    const metrics = await used.service.metrics();
    return lines.every((line) => line.test(metrics));
  };

  it('is looked at again and again between two rounds of retention', async () => {
    const requestId = randomUUID();
    const paid = used.client.call({ method: 'CreatePayment', request: paymentRequest(), requestId });
    await gate.asked(1);
    await used.database.rows(`UPDATE idempotency_record SET created_at = now() - interval '5 minutes'`);
    await until('an old claim is shown', () =>
      shows(/^idempotency_oldest_claim_age_seconds 3\d\d\./m, /^idempotency_records\{state="claimed"\} 1$/m),
    );
    expect(await shows(/^idempotency_partitions \d+$/m)).toBe(true);

    gate.answer(1);
    expect((await paid).code).toBe(status.OK);
    await until('it is shown as completed', () =>
      shows(
        /^idempotency_oldest_claim_age_seconds 0$/m,
        /^idempotency_records\{state="claimed"\} 0$/m,
        /^idempotency_records\{state="completed"\} 1$/m,
      ),
    );
  });
});
