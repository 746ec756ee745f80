import { belongsTo, type Comparison, comparePair, isClaimed, isYoung } from './comparison';
import { isLeftBehind } from './find-abandoned-drafts';
import type { Charge } from './findings';
import { type Entry, readEntries, readRefunds, type RefundSums } from './own-books';

/**
 * Goes through the charges of the network. Each is read there before ours are: a draft is committed before its charge is
 * asked for, and goes only as its payment comes.
 */
export async function findOrphanedCharges(comparison: Comparison): Promise<void> {
  const { prisma, network, since } = comparison;
  for await (const page of network.charges(since)) {
    const references = page.map(({ reference }) => reference);
    const entryOf = await readEntries(prisma, references);
    const refundsOf = await readRefunds(
      prisma,
      references.filter((reference) => entryOf(reference).payment !== undefined),
    );
    for (const charge of page) {
      await compareCharge(comparison, charge, entryOf(charge.reference), refundsOf);
    }
  }
}

/** Compares a charge with the payment it belongs to, or judges it where it belongs to none. */
export async function compareCharge(
  comparison: Comparison,
  charge: Charge,
  entry: Entry,
  refundsOf: (paymentId: string) => RefundSums,
): Promise<void> {
  const { payment } = entry;
  if (payment !== undefined && belongsTo(charge, payment)) {
    await comparePair(comparison, { payment, charge, refunds: refundsOf(payment.paymentId) });
  } else await judgeCharge(comparison, charge, entry);
}

/** Judges a charge that belongs to no payment. */
export async function judgeCharge(comparison: Comparison, charge: Charge, { draft }: Entry): Promise<void> {
  const { findings, underWay } = comparison;
  // Given back.
  if (charge.refundedMinor >= charge.amountMinor) return;
  const id = charge.authorizationId;
  if (isYoung(comparison, charge.createdAtMs)) underWay.push({ subject: 'charge', id, why: 'young' });
  else if (draft !== undefined && (await isClaimed(comparison, draft)) && !(await isLeftBehind(comparison, draft))) {
    underWay.push({ subject: 'charge', id, why: 'claimed' });
  } else findings.push({ kind: 'orphaned_charge', charge });
}
