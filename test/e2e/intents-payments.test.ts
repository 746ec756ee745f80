import { credentials, derivedRequestId, newRequestId } from '../../src/idempotency/index';
import { createPaymentsClient, type PaymentsClient } from '../../src/payments/payments-client';
import { type CallersDatabase, createCallersDatabase } from '../support/intents';
import { useService } from '../support/use-service';

const used = useService();
let callers: CallersDatabase;
let payments: PaymentsClient;

beforeAll(async () => {
  callers = await createCallersDatabase();
  payments = createPaymentsClient(`127.0.0.1:${used.service.grpcPort}`, { credentials: credentials.createInsecure() });
  // One live payment per order would hide a second key.
  await used.database.rows('DROP INDEX payments_one_live_per_order');
});

afterAll(async () => {
  payments.close();
  await callers.close();
});

async function pay(orderId: string, requestId: string) {
  let replayed = false;
  const request = { orderId, amountMinor: 1250n, currency: 'EUR', paymentMethod: 'tok_visa', metadata: {} };
  const onEnd = (end: { readonly replayed: boolean }): void => void (replayed = end.replayed);
  const { payment } = await payments.createPayment(request, { requestId, onEnd });
  return { paymentId: payment?.paymentId, replayed };
}

function paymentsOf(orderId: string): Promise<number> {
  return used.database.count(`payments WHERE order_id = '${orderId}'`);
}

describe('a tool of an agent, whose answer gets lost between them (case P1)', () => {
  /** The key is an explicit input, and part of what comes back; without one, the order is the intent. */
  const tool = async ({ orderId, requestId }: { readonly orderId: string; readonly requestId?: string }) => {
    const key = requestId ?? (await callers.intents().requestIdFor('pay', orderId)).requestId;
    return { ...(await pay(orderId, key)), requestId: key };
  };

  it('pays once when the agent calls again, with the key that it was told or without', async () => {
    const { paymentId, requestId } = await tool({ orderId: 'order-1' });
    expect(await tool({ orderId: 'order-1', requestId })).toEqual({ paymentId, requestId, replayed: true });
    expect(await tool({ orderId: 'order-1' })).toEqual({ paymentId, requestId, replayed: true });
    expect(await paymentsOf('order-1')).toBe(1);
  });
});

describe('keys that are derived from one that is kept', () => {
  it.each([
    ['dated', newRequestId()],
    ['undated', 'order:4711:everything'],
  ])('are keys to a server, one intent each, where the parent is %s', async (kind, parent) => {
    const orders = [`${kind}-goods`, `${kind}-shipping`];
    const payAll = () => Promise.all(orders.map((orderId) => pay(orderId, derivedRequestId(parent, orderId))));
    const first = await payAll();
    expect(first.map(({ replayed }) => replayed)).toEqual([false, false]);
    expect(await payAll()).toEqual(first.map(({ paymentId }) => ({ paymentId, replayed: true })));
    for (const orderId of orders) expect(await paymentsOf(orderId)).toBe(1);
  });
});
