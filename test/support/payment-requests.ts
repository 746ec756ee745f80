/** A request that makes a payment, as proto-loader takes it. */
export function paymentRequest(change: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
  return {
    order_id: 'order-1',
    amount_minor: '1250',
    currency: 'EUR',
    payment_method: 'tok_visa',
    metadata: { basket: '7' },
    ...change,
  };
}
