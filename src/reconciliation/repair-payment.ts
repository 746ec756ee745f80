import type { Prisma } from '../gen/prisma/client';
import { cancelPayment, findPayment, type PaymentRow } from '../payments/payment-repository';
import { finishRefund, lockPayment, reserveRefund } from '../payments/refund-repository';
import { type Books, SEEING_OTHERS } from './comparison';
import type { Finding, FoundPayment, Outcome } from './findings';
import { refundKey } from './network-books';
import { REFUND_UNDER_WAY, returnableMinor } from './returnable-amount';

/**
 * Cancels a payment that the network holds nothing for: it says of money that it is there. It never charges the card:
 * whoever wanted the order paid asks again, under a key of its own.
 */
export async function repairUnchargedPayment(books: Books, found: FoundPayment): Promise<Outcome> {
  const { prisma, network } = books;
  const { paymentId, scope } = found;
  const charge = await network.find(found.authorizationId);
  if (charge !== undefined && charge.reference === paymentId) return { kind: 'gone' };
  const others = (await network.inNameOf(paymentId)).filter((other) => other.refundedMinor < other.amountMinor);
  if (others.length > 0) {
    return { kind: 'left', why: 'the network holds a charge in its name that it does not know: for a person' };
  }
  return prisma.$transaction<Outcome>(async (tx) => {
    if ((await lockIfUnchanged(tx, found)) === null) return { kind: 'gone' };
    if ((await tx.refund.count({ where: { paymentId } })) > 0) {
      return { kind: 'left', why: 'it has refunds: for a person' };
    }
    await cancelPayment(tx, scope, paymentId);
    return { kind: 'repaired', how: 'cancelled the payment' };
  }, SEEING_OTHERS);
}

/**
 * Gives back what is left of a duplicate and cancels it, in the steps of every refund: the amount is reserved under the
 * lock of the payment, the network is asked, and what it did is recorded. A run that goes on where another was cut off
 * finds the reservation by its key, and asks for the same amount.
 */
export async function repairDuplicatePayment(
  { prisma, network }: Books,
  { payment: found, charge, keptPaymentId }: Extract<Finding, { kind: 'duplicate_payment' }>,
): Promise<Outcome> {
  const { paymentId, scope } = found;
  const requestId = refundKey(charge);
  const now = await network.find(charge.authorizationId);
  if (now === undefined) return { kind: 'left', why: 'the network does not know its charge: for a person' };
  const reserved = await prisma.$transaction(async (tx) => {
    const payment = await lockIfUnchanged(tx, found);
    const kept = await findPayment(tx, scope, keptPaymentId);
    if (payment === null || kept?.state !== 'authorized') return undefined;
    const reservation = await tx.refund.findFirst({ where: { paymentId, requestId } });
    if (reservation !== null) return reservation;
    const amountMinor = await returnableMinor(tx, payment, now);
    if (amountMinor === 'under_way') return amountMinor;
    if (amountMinor <= 0n) return 'nothing_left';
    return reserveRefund(tx, payment, { amountMinor, reason: `duplicate of ${keptPaymentId}`, requestId });
  }, SEEING_OTHERS);
  if (reserved === undefined) return { kind: 'gone' };
  if (reserved === 'under_way') return { kind: 'left', why: REFUND_UNDER_WAY };
  if (reserved === 'nothing_left') {
    await cancelPayment(prisma, scope, paymentId);
    return { kind: 'repaired', how: `cancelled it, of which nothing is held; ${keptPaymentId} stands` };
  }
  const networkRefundId = await network.refund(charge, reserved.amountMinor);
  await prisma.$transaction(async (tx) => {
    await finishRefund(tx, reserved.refundId, networkRefundId);
    await cancelPayment(tx, scope, paymentId);
  });
  return { kind: 'repaired', how: `gave back what was left, and cancelled it; ${keptPaymentId} stands` };
}

/** Locks a payment; null where it is no longer live, or no longer the one that was found. */
async function lockIfUnchanged(
  tx: Prisma.TransactionClient,
  { scope, paymentId, authorizationId }: FoundPayment,
): Promise<PaymentRow | null> {
  const payment = await lockPayment(tx, scope, paymentId);
  return payment?.state === 'authorized' && payment.authorizationId === authorizationId ? payment : null;
}
