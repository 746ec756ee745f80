/** A program that cancels a call while its next attempt is awaited, and then has nothing left to do. */
import { credentials } from '@grpc/grpc-js';
import { type IdempotencyError, newRequestId } from '../../src/idempotency/index';
import { createPaymentsClient } from '../../src/payments/payments-client';

const cancel = new AbortController();
const payments = createPaymentsClient(process.argv[2] ?? '', {
  credentials: credentials.createInsecure(),
  // As long as a call can wait: a timer that stays behind keeps the process for all of it.
  ...{ initialBackoffMs: 25_000, maxBackoffMs: 25_000, random: () => 0.99 },
  onEvent: ({ type }) => type === 'retry' && setImmediate(() => cancel.abort()),
});
const request = { orderId: 'order-1', amountMinor: 1n, currency: 'EUR', paymentMethod: 'tok', metadata: {} };
payments
  .createPayment(request, { requestId: newRequestId(), signal: cancel.signal })
  .catch(({ code, why, attempts, outcomeUnknown }: IdempotencyError) => {
    payments.close();
    console.log(JSON.stringify({ code, why, attempts, outcomeUnknown }));
  });
