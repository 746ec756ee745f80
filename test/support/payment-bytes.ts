import { both, int64, message, string, type Write } from './wire-fields';

/** The fields of a CreatePaymentRequest, to be put together by hand. */
export interface PaymentFields {
  readonly orderId: Write;
  readonly amount: Write;
  readonly currency: Write;
  readonly paymentMethod: Write;
  readonly metadata: Write;
}

/** Field numbers as in payments/v1/payments.proto. */
export function paymentFields(orderId: string, amountMinor = 1250n): PaymentFields {
  return {
    orderId: string(1, orderId),
    amount: int64(2, amountMinor),
    currency: string(3, 'EUR'),
    paymentMethod: string(4, 'tok_visa'),
    metadata: both(note('basket', '7'), note('shop', 'berlin')),
  };
}

/** An entry of `metadata`. */
export function note(name: string, value: string): Write {
  return message(5, string(1, name), string(2, value));
}
