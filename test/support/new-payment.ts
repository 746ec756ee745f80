import { randomUUID } from 'node:crypto';
import type { CreatePaymentRequest } from '../../src/gen/proto/payments/v1/payments';

/** A payment of an order of its own, as a typed client takes it. */
export function newPayment(): CreatePaymentRequest {
  return {
    ...{ orderId: randomUUID(), amountMinor: 1250n, currency: 'EUR', paymentMethod: 'tok_visa', metadata: {} },
  };
}
