import { randomUUID } from 'node:crypto';

/** A request that makes a payment, of an order of its own, as proto-loader takes it. */
export function paymentRequest(change: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
  return {
    order_id: `order-${randomUUID()}`,
    amount_minor: '1250',
    currency: 'EUR',
    payment_method: 'tok_visa',
    metadata: { basket: '7' },
    ...change,
  };
}
