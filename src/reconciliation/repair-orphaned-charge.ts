import type { Outbox } from '../outbox/outbox';
import { type PaymentDraftRow, removeDraft } from '../payments/draft-repository';
import { findLivePayment, insertPaymentIfUnpaid } from '../payments/payment-repository';
import { receiptRequested } from '../receipts/receipt-event';
import { belongsTo, type Books, SEEING_OTHERS } from './comparison';
import { isLeftBehind } from './find-abandoned-drafts';
import type { Charge, Outcome } from './findings';
import { readEntries } from './own-books';

/**
 * Records the payment of a charge whose draft tells what it was for, as its request would have; gives the money back
 * where nothing does, where its caller was told that it failed, or where its order has another live payment.
 *
 * The draft goes first, or in the transaction that records the payment: a request that wakes after all finds it gone, and
 * makes no payment for money that was given back.
 */
export async function repairOrphanedCharge(
  books: Books & { readonly outbox: Outbox },
  found: Charge,
): Promise<Outcome> {
  const { prisma, network, statusOf } = books;
  const charge = await network.find(found.authorizationId);
  if (charge === undefined || charge.refundedMinor >= charge.amountMinor) return { kind: 'gone' };
  const { draft, payment } = (await readEntries(prisma, [charge.reference]))(charge.reference);
  if (payment !== undefined && belongsTo(charge, payment)) return { kind: 'gone' };
  if (payment?.state === 'authorized') {
    const own = await network.find(payment.authorizationId);
    // What else would that payment stand on?
    if (own === undefined || !belongsTo(own, payment)) {
      return { kind: 'left', why: 'it may be the charge of a live payment that names another one: for a person' };
    }
  }
  if (draft === undefined) return giveBack(books, charge);

  const status = await statusOf(draft);
  if (status?.kind === 'in_progress' && !(await isLeftBehind(books, draft))) {
    return { kind: 'left', why: 'its request is under way again' };
  }
  if (draft.amountMinor !== charge.amountMinor || draft.currency !== charge.currency) {
    return { kind: 'left', why: 'its draft says another amount: for a person' };
  }
  const failed = status?.kind === 'completed' && status.code !== 0;
  if (failed || charge.refundedMinor > 0n) {
    const isOurs = await prisma.$transaction((tx) => removeDraft(tx, draft.paymentId));
    return isOurs ? giveBack(books, charge) : { kind: 'left', why: CHANGED };
  }
  switch (await recordPayment(books, draft, charge)) {
    case 'recorded':
      return { kind: 'repaired', how: `recorded the payment ${draft.paymentId} of the order ${draft.orderId}` };
    case 'paid':
      return giveBack(books, charge);
    case 'changed':
      return { kind: 'left', why: CHANGED };
  }
}

const CHANGED = 'it changed meanwhile: run this again';

async function giveBack({ network }: Books, charge: Charge): Promise<Outcome> {
  const refundId = await network.refund(charge, charge.amountMinor - charge.refundedMinor);
  return { kind: 'repaired', how: `gave the money back: refund ${refundId} of the network` };
}

/** Who removes the draft decides. `paid`: the order has another live payment, and the draft is gone. */
function recordPayment(
  { prisma, outbox }: Books & { readonly outbox: Outbox },
  draft: PaymentDraftRow,
  { authorizationId }: Charge,
): Promise<'recorded' | 'paid' | 'changed'> {
  const { paymentId, scope, orderId, amountMinor, currency, paymentMethod, metadata, requestId } = draft;
  return prisma.$transaction(async (tx) => {
    if (!(await removeDraft(tx, paymentId))) return 'changed';
    // The index that refuses a second live payment may be what a restore has lost. Whoever pays the order anew waits for
    // the draft, and then sees this payment.
    if ((await findLivePayment(tx, scope, orderId)) !== null) return 'paid';
    const payment = await insertPaymentIfUnpaid(tx, {
      ...{ paymentId, scope, orderId, amountMinor, currency, paymentMethod, requestId, authorizationId },
      metadata: metadata as Readonly<Record<string, string>>,
    });
    if (payment === undefined) return 'paid';
    await outbox.add(tx, receiptRequested(payment));
    return 'recorded';
  }, SEEING_OTHERS);
}
