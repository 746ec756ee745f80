import { status } from '@grpc/grpc-js';
import type { Prisma } from '../gen/prisma/client';
import type { UpdatePaymentRequest, UpdatePaymentResponse } from '../gen/proto/payments/v1/payments';
import { type Attempt, invalidArgument, StatusError } from '../idempotency/index';
import { ETAG_MISMATCH, PAYMENTS_DOMAIN } from './domain';
import { updateViolations } from './payment';
import { paymentMessage } from './payment-message';
import { paymentResource } from './payment-resource';
import { findPayment, updatePaymentIfUnchanged } from './payment-repository';

/**
 * Replaces the metadata of a payment that is still at the etag its writer has seen, so that a late retry never overwrites
 * a newer write. Thrown and not recorded: with a key, the retry of a write that happened is replayed anyway.
 *
 * @throws StatusError INVALID_ARGUMENT, NOT_FOUND, or ABORTED with reason `ETAG_MISMATCH`, which says that it is never to be
 *   sent again (design 3.2)
 */
export async function updatePayment(
  request: UpdatePaymentRequest,
  attempt: Attempt<Prisma.TransactionClient, UpdatePaymentResponse>,
): Promise<UpdatePaymentResponse> {
  const violations = updateViolations(request);
  if (violations.length > 0) throw invalidArgument(violations);
  const { scope } = attempt;
  const { paymentId, etag, metadata } = request;
  attempt.publish({ payment_id: paymentId, resource: paymentResource(request) });
  return attempt.complete(async (tx) => {
    const written = await updatePaymentIfUnchanged(tx, { scope, paymentId, etag, metadata });
    const payment = await findPayment(tx, scope, paymentId);
    if (payment === null) throw new StatusError(status.NOT_FOUND, 'no such payment');
    if (!written) throw etagMismatch();
    return { payment: paymentMessage(payment) };
  });
}

function etagMismatch(): StatusError {
  const text = 'the payment was changed since its etag was read: read it again, and decide anew what to write';
  return new StatusError(status.ABORTED, text, [], { reason: ETAG_MISMATCH, domain: PAYMENTS_DOMAIN }, 'never');
}
