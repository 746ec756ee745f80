import { status } from '@grpc/grpc-js';
import type { Prisma } from '../gen/prisma/client';
import type { CreatePaymentRequest, CreatePaymentResponse } from '../gen/proto/payments/v1/payments';
import { type Attempt, invalidArgument, reject, type Rejection, StatusError } from '../idempotency/index';
import { PAYMENTS_DOMAIN } from './domain';
import { paymentViolations } from './payment';
import { paymentMessage } from './payment-message';
import { paymentResource } from './payment-resource';
import { findLivePayment, insertPaymentIfUnpaid, type PaymentRow } from './payment-repository';
import type { PaymentsServiceOptions } from './payments-service';

type CreateAttempt = Attempt<Prisma.TransactionClient, CreatePaymentResponse>;

/**
 * Authorizes and records a payment. An order that has a live payment is refused before anybody is asked for money, and
 * again by the table when two payments of one order meet; the refusal is an answer, recorded and replayed.
 *
 * @throws StatusError INVALID_ARGUMENT that names every field at fault
 */
export async function createPayment(
  { prisma, authorizer, onPaymentCreated }: PaymentsServiceOptions,
  request: CreatePaymentRequest,
  attempt: CreateAttempt,
): Promise<CreatePaymentResponse | Rejection> {
  const violations = paymentViolations(request);
  if (violations.length > 0) throw invalidArgument(violations);
  const { scope } = attempt;
  attempt.publish({ order_id: request.orderId });
  const live = await findLivePayment(prisma, scope, request.orderId);
  if (live !== null) return attempt.complete(() => Promise.resolve(alreadyPaid(live, attempt)));

  const authorizationId = await authorizer.authorize(request);
  attempt.publish({ authorization_id: authorizationId });
  const outcome = await attempt.complete((tx) => record(tx, request, authorizationId, attempt));
  if ('payment' in outcome) onPaymentCreated();
  return outcome;
}

async function record(
  tx: Prisma.TransactionClient,
  { orderId, amountMinor, currency, paymentMethod, metadata }: CreatePaymentRequest,
  authorizationId: string,
  attempt: CreateAttempt,
): Promise<CreatePaymentResponse | Rejection> {
  const { scope, requestId } = attempt;
  const payment = await insertPaymentIfUnpaid(tx, {
    ...{ scope, requestId, orderId, amountMinor, currency, paymentMethod, metadata, authorizationId },
  });
  if (payment === undefined) {
    const live = await findLivePayment(tx, scope, orderId);
    // The other one was cancelled in between; the order can be paid after all.
    if (live === null) throw new StatusError(status.ABORTED, 'another payment of this order was just cancelled: retry');
    return alreadyPaid(live, attempt);
  }
  attempt.publish({ payment_id: payment.paymentId, resource: paymentResource(payment), state: payment.state });
  return { payment: paymentMessage(payment) };
}

function alreadyPaid(live: PaymentRow, attempt: CreateAttempt): Rejection {
  const { paymentId } = live;
  attempt.publish({ payment_id: paymentId, resource: paymentResource(live) });
  return reject(
    new StatusError(status.ALREADY_EXISTS, `the order has a live payment, ${paymentId}`, [], {
      reason: 'ORDER_ALREADY_PAID',
      domain: PAYMENTS_DOMAIN,
      metadata: { payment_id: paymentId },
    }),
  );
}
