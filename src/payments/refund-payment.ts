import { status } from '@grpc/grpc-js';
import type { Prisma } from '../gen/prisma/client';
import type { RefundPaymentRequest, RefundPaymentResponse } from '../gen/proto/payments/v1/payments';
import { type Attempt, invalidArgument, reject, type Rejection, StatusError } from '../idempotency/index';
import { REFUND_EFFECT } from './carry-out-refund';
import { PAYMENT_NOT_REFUNDABLE, PAYMENTS_DOMAIN, REFUND_EXCEEDS_PAYMENT } from './domain';
import { refundViolations } from './payment';
import { refundMessage } from './payment-message';
import { paymentResource } from './payment-resource';
import type { PaymentsServiceOptions } from './payments-service';
import { finishRefund, lockPayment, refundableMinor, reserveRefund } from './refund-repository';

type RefundAttempt = Attempt<Prisma.TransactionClient, RefundPaymentResponse>;

/** What the first phase decides, as it is stored. */
type Reservation =
  | { readonly kind: 'reserved'; readonly refundId: string; readonly authorizationId: string }
  | { readonly kind: 'not_refundable'; readonly state: string }
  | { readonly kind: 'exceeds'; readonly refundableMinor: bigint };

/**
 * Gives back a part or all of a payment, in steps that a later attempt goes on from: the amount is reserved under the
 * lock of the payment, the card network is asked, and the refund is recorded. So all refunds of a payment, also those
 * under way, never come to more than was paid. What can't be refunded is an answer, recorded and replayed.
 *
 * @throws StatusError INVALID_ARGUMENT, NOT_FOUND, or UNAVAILABLE while it is not known whether the money was given back
 */
export async function refundPayment(
  { authorizer, prisma }: PaymentsServiceOptions,
  request: RefundPaymentRequest,
  attempt: RefundAttempt,
): Promise<RefundPaymentResponse | Rejection> {
  const violations = refundViolations(request);
  if (violations.length > 0) throw invalidArgument(violations);
  const { paymentId, amountMinor } = request;
  attempt.publish({ payment_id: paymentId, resource: paymentResource(request) });
  const reservation = await attempt.phase('reserve', (tx) => reserve(tx, request, attempt), {
    begins: ({ kind }) => (kind === 'reserved' ? REFUND_EFFECT : undefined),
  });
  if (reservation.kind !== 'reserved') return attempt.complete(() => Promise.resolve(refused(reservation)));

  const { refundId, authorizationId } = reservation;
  attempt.publish({ refund_id: refundId });
  const networkRefundId = await attempt.effect(REFUND_EFFECT, async (requestId, call) => {
    // Somebody may have carried it out, longer ago than the network keeps keys.
    const made = await prisma.refund.findUnique({ where: { refundId } });
    return made?.networkRefundId ?? authorizer.refund({ authorizationId, amountMinor }, { requestId, ...call });
  });
  return attempt.complete(async (tx) => {
    const refund = await finishRefund(tx, refundId, networkRefundId);
    if (refund === null) throw new Error('given back, and the reserved refund is gone: its payment is for a person');
    return { refund: refundMessage(refund) };
  });
}

async function reserve(
  tx: Prisma.TransactionClient,
  { paymentId, amountMinor, reason }: RefundPaymentRequest,
  { scope, requestId = '' }: RefundAttempt,
): Promise<Reservation> {
  const payment = await lockPayment(tx, scope, paymentId);
  if (payment === null) throw new StatusError(status.NOT_FOUND, 'no such payment');
  const { state, authorizationId } = payment;
  if (state !== 'authorized') return { kind: 'not_refundable', state };
  const left = await refundableMinor(tx, payment);
  if (amountMinor > left) return { kind: 'exceeds', refundableMinor: left };
  const { refundId } = await reserveRefund(tx, payment, { amountMinor, reason, requestId });
  return { kind: 'reserved', refundId, authorizationId };
}

function refused(reservation: Exclude<Reservation, { kind: 'reserved' }>): Rejection {
  switch (reservation.kind) {
    case 'not_refundable':
      return refusal(`the payment is ${reservation.state}: nothing can be refunded`, PAYMENT_NOT_REFUNDABLE, {});
    case 'exceeds': {
      const left = String(reservation.refundableMinor);
      const text = `no more than ${left} is left to refund of the payment`;
      return refusal(text, REFUND_EXCEEDS_PAYMENT, { refundable_minor: left });
    }
  }
}

function refusal(text: string, reason: string, metadata: Readonly<Record<string, string>>): Rejection {
  const info = { reason, domain: PAYMENTS_DOMAIN, metadata };
  return reject(new StatusError(status.FAILED_PRECONDITION, text, [], info));
}
