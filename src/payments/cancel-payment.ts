import { status } from '@grpc/grpc-js';
import type { Prisma } from '../gen/prisma/client';
import type { CancelPaymentRequest, CancelPaymentResponse } from '../gen/proto/payments/v1/payments';
import { type Attempt, invalidArgument, newRequestId, StatusError } from '../idempotency/index';
import { paymentIdViolations } from './payment';
import { paymentMessage } from './payment-message';
import { cancelPayment as setCancelled, type PaymentRow } from './payment-repository';
import type { PaymentsServiceOptions } from './payments-service';
import { refundReserved } from './refund-event';
import { lockPayment, refundableMinor, reserveRefund } from './refund-repository';

/** Shown to the account as the reason of the refund. */
const REASON = 'payment cancelled';

/**
 * Cancels a payment, and has what is left of it given back. It takes no key, so it can't ask the card network in steps
 * that are resumed: it reserves the refund and leaves an event that asks for it, in the transaction that cancels. Only
 * the call that finds the payment live does so; all others are told that it is cancelled.
 *
 * @throws StatusError INVALID_ARGUMENT or NOT_FOUND
 */
export async function cancelPayment(
  { outbox }: Pick<PaymentsServiceOptions, 'outbox'>,
  { paymentId }: CancelPaymentRequest,
  attempt: Attempt<Prisma.TransactionClient, CancelPaymentResponse>,
): Promise<CancelPaymentResponse> {
  const violations = paymentIdViolations(paymentId);
  if (violations.length > 0) throw invalidArgument(violations);
  return attempt.complete(async (tx) => {
    const payment = existing(await lockPayment(tx, attempt.scope, paymentId));
    if (payment.state !== 'authorized') return { payment: paymentMessage(payment) };
    const amountMinor = await refundableMinor(tx, payment);
    if (amountMinor > 0n) {
      const refund = await reserveRefund(tx, payment, { amountMinor, reason: REASON, requestId: newRequestId() });
      await outbox.add(tx, refundReserved(refund));
    }
    return { payment: paymentMessage(existing(await setCancelled(tx, attempt.scope, paymentId))) };
  });
}

function existing(payment: PaymentRow | null): PaymentRow {
  if (payment === null) throw new StatusError(status.NOT_FOUND, 'no such payment');
  return payment;
}
