import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { Authorizer } from '../../src/payments/authorizer';
import { createAuthorizerGate } from '../support/authorizer-gate';
import { paymentRequest } from '../support/payment-requests';
import { statementsWaiting } from '../support/record-hold';
import { startTestService } from '../support/service';
import { createStockClient, type StockAnswer, type StockClient } from '../support/stock-client';
import { until } from '../support/until';
import { type ServiceInUse, useService } from '../support/use-service';

interface SecondService {
  readonly client: StockClient;
  stop(): Promise<void>;
}

/** A second service on the same database, with connections of its own. */
async function startSecondService({ database }: ServiceInUse, authorizer: Authorizer): Promise<SecondService> {
  const service = await startTestService({ connectionString: database.connectionString, authorizer });
  const client = createStockClient(service.grpcPort);
  return {
    client,
    stop: async () => {
      client.close();
      await service.stop();
    },
  };
}

describe('an order has one live payment', () => {
  const used = useService();
  const pay = (orderId: string, requestId: string = randomUUID()): Promise<StockAnswer> =>
    used.client.call({ method: 'CreatePayment', request: paymentRequest({ order_id: orderId }), requestId });
  const cancel = (paymentId: string): Promise<StockAnswer> =>
    used.client.call({ method: 'CancelPayment', request: { payment_id: paymentId } });
  const idOf = ({ response }: StockAnswer): string => response?.payment.payment_id ?? '';
  const liveOf = async (orderId: string): Promise<string[]> => {
    const text = `SELECT payment_id::text AS id FROM payments WHERE order_id = $1 AND state = 'authorized'`;
    return (await used.database.rows<{ id: string }>(text, [orderId])).map(({ id }) => id);
  };
  const expectAlreadyPaid = (refused: StockAnswer, paymentId: string): void => {
    expect(refused.code).toBe(status.ALREADY_EXISTS);
    expect(refused.error).toMatchObject({ reason: 'ORDER_ALREADY_PAID', domain: 'payments.v1' });
    expect(refused.error.metadata.get('payment_id')).toBe(paymentId);
  };

  it('refuses a second payment of an order, tells which one lives, and asks nobody for money', async () => {
    const orderId = randomUUID();
    const first = await pay(orderId);
    const asked = used.authorizations.length;
    const second = await pay(orderId);

    expectAlreadyPaid(second, idOf(first));
    expect(second.trailersOnly).toBe(true);
    expect(used.authorizations).toHaveLength(asked);
    expect(await liveOf(orderId)).toEqual([idOf(first)]);
  });

  it('records the refusal: its key is told the same again, also after the live payment was cancelled', async () => {
    const orderId = randomUUID();
    const requestId = randomUUID();
    const first = await pay(orderId);
    const refused = await pay(orderId, requestId);
    const again = await pay(orderId, requestId);
    await cancel(idOf(first));
    const afterCancel = await pay(orderId, requestId);

    expect(refused.trailers.get('idempotent-replayed')).toEqual([]);
    for (const replayed of [again, afterCancel]) {
      expectAlreadyPaid(replayed, idOf(first));
      expect(replayed.details).toBe(refused.details);
      expect(replayed.trailers.get('idempotent-replayed')).toEqual(['true']);
    }
    expect(await liveOf(orderId)).toEqual([]);
  });

  it('lets an order be paid again, with a new key, when its payment was cancelled', async () => {
    const orderId = randomUUID();
    const first = await pay(orderId);
    await cancel(idOf(first));
    const second = await pay(orderId);

    expect(second.code).toBe(status.OK);
    expect(await liveOf(orderId)).toEqual([idOf(second)]);
    expectAlreadyPaid(await pay(orderId), idOf(second));
  });

  it('sees the payment that a draft has become while it waited for that draft, and asks nobody for money', async () => {
    const orderId = randomUUID();
    const other = await used.database.pool.connect();
    const values = [randomUUID(), orderId];
    await other.query('BEGIN');
    await other.query(
      `INSERT INTO payment_drafts (payment_id, scope, order_id, amount_minor, currency, payment_method, request_id)
       VALUES ($1, 'local', $2, 1250, 'EUR', 'tok_visa', 'the key of another')`,
      values,
    );
    const asked = used.authorizations.length;
    const second = pay(orderId);
    await statementsWaiting(used.database, 1);
    await other.query('DELETE FROM payment_drafts WHERE order_id = $1', [orderId]);
    await other.query(
      `INSERT INTO payments (payment_id, scope, order_id, amount_minor, currency, payment_method, state,
                             authorization_id, etag)
       VALUES ($1, 'local', $2, 1250, 'EUR', 'tok_visa', 'authorized', 'authorization-1', gen_random_uuid())`,
      values,
    );
    await other.query('COMMIT');
    other.release();
    expectAlreadyPaid(await second, values[0] ?? '');
    expect(used.authorizations).toHaveLength(asked);
    expect(await used.database.count('payment_drafts')).toBe(0);
  });

  it('counts no payment that was refused', async () => {
    const created = async () => /^payments_created_total (\d+)$/m.exec(await used.service.metrics())?.[1];
    const orderId = randomUUID();
    await pay(orderId);
    const before = await created();
    await pay(orderId);
    expect(await created()).toBe(before);
  });
});

describe('fifty payments of one order, through two services, while the card network is silent', () => {
  const COUNT = 50;
  const gate = createAuthorizerGate();
  const used = useService({ authorizer: gate.authorizer });
  let second: SecondService;

  beforeAll(async () => {
    second = await startSecondService(used, gate.authorizer);
  });

  afterAll(() => second.stop());

  it('ask for money once: the others come back until it is paid, and then have a recorded refusal that names it', async () => {
    const request = paymentRequest({ order_id: 'order-1' });
    const keys = Array.from({ length: COUNT }, () => randomUUID());
    const payAll = (some: readonly string[]) =>
      Promise.all(
        some.map((requestId, at) =>
          (at % 2 === 0 ? used.client : second.client).call({ method: 'CreatePayment', request, requestId }),
        ),
      );
    let ended = 0;
    const sent = keys.map((requestId, at) =>
      (at % 2 === 0 ? used.client : second.client)
        .call({ method: 'CreatePayment', request, requestId })
        .finally(() => (ended += 1)),
    );
    await gate.asked(1);
    await until('the others have ended', () => Promise.resolve(ended === COUNT - 1));
    gate.answer(1);
    const answers = await Promise.all(sent);
    const [paid] = answers.filter(({ code }) => code === status.OK);
    const losers = answers.filter((answer) => answer !== paid);
    expect(losers).toHaveLength(COUNT - 1);
    for (const refused of losers) {
      expect(refused).toMatchObject({ code: status.ABORTED, error: { reason: 'ORDER_PAYMENT_IN_PROGRESS' } });
    }
    // Not recorded: their keys are free, until the order is paid.
    expect(await used.database.count('idempotency_record')).toBe(1);

    const refusals = (await payAll(keys)).filter(({ code }) => code !== status.OK);
    const replays = (await payAll(keys)).filter(({ code }) => code !== status.OK);
    expect(refusals).toHaveLength(COUNT - 1);
    for (const refused of refusals) {
      expect(refused).toMatchObject({ code: status.ALREADY_EXISTS, error: { reason: 'ORDER_ALREADY_PAID' } });
      expect(refused.error.metadata.get('payment_id')).toBe(paid?.response?.payment.payment_id);
    }
    expect(replays.map(({ code, details }) => [code, details])).toEqual(
      refusals.map(({ code, details }) => [code, details]),
    );
    expect(replays.filter(({ trailers }) => trailers.get('idempotent-replayed').length === 0)).toEqual([]);
    expect(gate.timesAsked()).toBe(1);
    expect(await used.database.count('payments')).toBe(1);
    expect(await used.database.count('payment_drafts')).toBe(0);
  });
});
