import { newRequestId } from '../idempotency/index';
import { carryOutRefund, networkKeyOf, REFUND_SENT_AGAIN_WITHIN_MS } from '../payments/carry-out-refund';
import { lockPayment, reserveRefund } from '../payments/refund-repository';
import { type Books, SEEING_OTHERS } from './comparison';
import { leftRequest } from './find-abandoned-drafts';
import type { Charge, FoundPayment, FoundRefund, Outcome } from './findings';
import { refundKey } from './network-books';
import { REFUND_UNDER_WAY, returnableMinor } from './returnable-amount';

/** What a person does where no program can end it. */
const LOOK_AND_NOTE = 'look there whether it was given back, then note it, see docs/operations.md';

/**
 * Carries a refund out that nobody goes on with, under the key that its request has used: where the network has given the
 * money back it says so again. A late retry of the request is told of the same refund.
 */
export async function repairUnfinishedRefund(books: Books, found: FoundRefund): Promise<Outcome> {
  const { prisma, network, refundRecordOf } = books;
  const { refundId, authorizationId } = found;
  if (leftRequest(books, await refundRecordOf(found)) === 'under_way') {
    return { kind: 'left', why: 'its request is under way again' };
  }
  if (authorizationId === undefined) return { kind: 'left', why: `its payment is gone: ${LOOK_AND_NOTE}` };
  if (found.ageMs > REFUND_SENT_AGAIN_WITHIN_MS) {
    return { kind: 'left', why: `the network may have forgotten its key: ${LOOK_AND_NOTE}` };
  }
  const charge = await network.find(authorizationId);
  if (charge === undefined) return { kind: 'left', why: `the network does not know its charge: ${LOOK_AND_NOTE}` };
  const refund = await prisma.refund.findUnique({ where: { refundId } });
  if (refund?.state !== 'reserved') return { kind: 'gone' };
  // One of a duplicate, whose repair was cut off, was asked for under another key.
  const requestId = refund.requestId === refundKey(charge) ? refund.requestId : networkKeyOf(refund);
  const networkRefundId = await carryOutRefund({ prisma, authorizer: network.authorizer }, refund, calling(requestId));
  return { kind: 'repaired', how: `carried it out: refund ${networkRefundId} of the network` };
}

/**
 * Gives back what the network holds of a cancelled payment, in the steps of every refund. A run that was cut off in between
 * leaves a refund that is reserved, which the next run carries out.
 */
export async function repairCancelledCharge(
  { prisma, network }: Books,
  { payment: found, charge: seen }: { readonly payment: FoundPayment; readonly charge: Charge },
): Promise<Outcome> {
  const { paymentId, scope } = found;
  const charge = await network.find(seen.authorizationId);
  if (charge === undefined) return { kind: 'gone' };
  const refund = await prisma.$transaction(async (tx) => {
    const payment = await lockPayment(tx, scope, paymentId);
    if (payment?.state !== 'cancelled' || payment.authorizationId !== seen.authorizationId) return undefined;
    if (charge.amountMinor !== payment.amountMinor) return 'other_amount';
    const amountMinor = await returnableMinor(tx, payment, charge);
    if (amountMinor === 'under_way') return amountMinor;
    if (amountMinor <= 0n) return undefined;
    return reserveRefund(tx, payment, { amountMinor, reason: 'payment cancelled', requestId: newRequestId() });
  }, SEEING_OTHERS);
  if (refund === undefined) return { kind: 'gone' };
  if (refund === 'other_amount') return { kind: 'left', why: 'the two say different amounts: for a person' };
  if (refund === 'under_way') return { kind: 'left', why: REFUND_UNDER_WAY };
  const call = calling(networkKeyOf(refund));
  const networkRefundId = await carryOutRefund({ prisma, authorizer: network.authorizer }, refund, call);
  return { kind: 'repaired', how: `gave back what was left: refund ${networkRefundId} of the network` };
}

/** Nobody waits for it but whoever runs the repair. */
function calling(requestId: string) {
  return { requestId, deadline: undefined, signal: new AbortController().signal };
}
