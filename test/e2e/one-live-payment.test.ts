import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { Authorizer } from '../../src/payments/authorizer';
import { paymentRequest } from '../support/payment-requests';
import { startTestService } from '../support/service';
import { createStockClient, type StockAnswer, type StockClient } from '../support/stock-client';
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

  it('counts no payment that was refused', async () => {
    const created = async () => /^payments_created_total (\d+)$/m.exec(await used.service.metrics())?.[1];
    const orderId = randomUUID();
    await pay(orderId);
    const before = await created();
    await pay(orderId);
    expect(await created()).toBe(before);
  });
});

describe('fifty payments of one order, through two services, that pass the first look together', () => {
  const COUNT = 50;
  // Nobody is answered before all have asked for money, so only the table can refuse.
  let askedByAll: () => void;
  const all = new Promise<void>((resolve) => (askedByAll = resolve));
  let asked = 0;
  const authorizer: Authorizer = {
    authorize: async () => {
      asked += 1;
      if (asked === COUNT) askedByAll();
      await all;
      return 'authorization-1';
    },
  };
  const used = useService({ authorizer });
  let second: SecondService;

  beforeAll(async () => {
    second = await startSecondService(used, authorizer);
  });

  afterAll(() => second.stop());

  it('end as one payment and as recorded refusals that name it', async () => {
    const request = paymentRequest({ order_id: 'order-1' });
    const keys = Array.from({ length: COUNT }, () => randomUUID());
    const pay = () =>
      Promise.all(
        keys.map((requestId, at) =>
          (at % 2 === 0 ? used.client : second.client).call({ method: 'CreatePayment', request, requestId }),
        ),
      );
    const answers = await pay();
    const replays = await pay();

    const paid = answers.filter(({ code }) => code === status.OK);
    expect(paid).toHaveLength(1);
    for (const refused of answers.filter((answer) => answer !== paid[0])) {
      expect(refused).toMatchObject({ code: status.ALREADY_EXISTS, error: { reason: 'ORDER_ALREADY_PAID' } });
      expect(refused.error.metadata.get('payment_id')).toBe(paid[0]?.response?.payment.payment_id);
    }
    expect(replays.map(({ code, bytes }) => [code, bytes])).toEqual(answers.map(({ code, bytes }) => [code, bytes]));
    expect(replays.filter(({ trailers }) => trailers.get('idempotent-replayed').length === 0)).toEqual([]);
    expect(await used.database.count('payments')).toBe(1);
    expect(asked).toBe(COUNT);
  });
});
