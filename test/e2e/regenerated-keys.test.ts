import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { Registry } from 'prom-client';
import { type ServerEvent, StatusError } from '../../src/idempotency/index';
import { createIdempotencyMetrics } from '../../src/ops/idempotency-metrics';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { datedKey, policyOf } from '../support/claim-requests';
import { paymentRequest } from '../support/payment-requests';

const LABELS = 'grpc_service="payments.v1.PaymentsService",grpc_method="CreatePayment"';
const SUSPECTS = `idempotency_regenerated_key_suspects_total{${LABELS}}`;
const AGES = 'idempotency_key_age_seconds';

describe('what the metrics tell of keys (design 3.4)', () => {
  let service: AttemptService;
  let registry: Registry;
  let count: (event: ServerEvent) => void;

  beforeAll(async () => {
    service = await startAttemptService({ onEvent: (event) => count(event) });
    service.handle({ createPayment: payAndComplete });
  });

  beforeEach(() => {
    registry = new Registry();
    count = createIdempotencyMetrics(registry, [policyOf('CreatePayment')]);
  });

  afterAll(() => service.stop());

  const value = async (series: string): Promise<number | undefined> => {
    const line = (await registry.metrics()).split('\n').find((each) => each.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length));
  };
  const payFor = (orderId: string, requestId: string) =>
    service.pay({ request: paymentRequest({ order_id: orderId }), requestId });

  it('is 0 from the start', async () => {
    expect(await value(SUSPECTS)).toBe(0);
    expect(await value(`${AGES}_count{${LABELS}}`)).toBe(0);
  });

  it('is a client that sends the same content under a new key each time', async () => {
    for (let attempt = 1; attempt <= 4; attempt += 1) await payFor('regenerated', randomUUID());

    expect(await value(SUSPECTS)).toBe(1);
    // Nothing is refused for a suspicion.
    expect(await service.database.count(`payments WHERE order_id = 'regenerated'`)).toBe(4);
  });

  it('is not one that keeps its key, nor one whose contents differ', async () => {
    const kept = randomUUID();
    for (let attempt = 1; attempt <= 4; attempt += 1) await payFor('kept', kept);
    for (let order = 1; order <= 4; order += 1) await payFor(`order-${order}`, randomUUID());
    expect((await payFor('another', kept)).code).toBe(status.FAILED_PRECONDITION);
    const resumed = randomUUID();
    service.handle({
      createPayment: async (_, attempt) => {
        await attempt.phase('draft', async () => 1);
        throw new StatusError(status.FAILED_PRECONDITION, 'not yet');
      },
    });
    for (let attempt = 1; attempt <= 4; attempt += 1) await payFor('resumed', resumed);
    service.handle({ createPayment: payAndComplete });

    expect(await value(SUSPECTS)).toBe(0);
  });

  it('is how old dated keys are when they arrive, whatever is done with them', async () => {
    const minuteOld = datedKey(Date.now() - 60_000);
    await payFor('old', minuteOld);
    await payFor('old', minuteOld);
    await payFor('undated', randomUUID());
    // Dated after the clock of this process: not older than now.
    await payFor('ahead', datedKey(Date.now() + 60_000));

    expect(await value(`${AGES}_count{${LABELS}}`)).toBe(3);
    const sum = (await value(`${AGES}_sum{${LABELS}}`)) ?? 0;
    expect(sum).toBeGreaterThanOrEqual(120);
    expect(sum).toBeLessThan(150);
  });
});
