import type { RefundRow } from '../payments/refund-repository';
import { beginComparison, belongsTo, type Books, type Comparison, isHeld, isYoung } from './comparison';
import { judgeDraft } from './find-abandoned-drafts';
import { compareCharge } from './find-orphaned-charges';
import { judgeLivePayments } from './find-payments';
import { judgeRefund } from './find-unfinished-refunds';
import type { Charge, Finding, UnderWay } from './findings';
import { type Entry, readEntries, readOrder, readRefunds, type RefundSums } from './own-books';

/** An order, as its account calls it. */
export interface OrderName {
  /** The account. */
  readonly scope: string;
  readonly orderId: string;
}

/** A payment of an order, or the draft of one, with what both books have of it. */
export interface OrderEntry {
  readonly paymentId: string;
  /** `draft` of a payment that is not made yet, else its own. */
  readonly state: string;
  /** The key of the request that made it; null where it came without. */
  readonly requestId: string | null;
  /** In the smallest unit of the currency. */
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly createdAt: Date;
  /** What the network holds, or has held, in its name. */
  readonly charges: readonly Charge[];
  /** Those under way included. */
  readonly refunds: readonly RefundRow[];
}

/** What both books have of one order. */
export interface OrderReport extends OrderName {
  /** The oldest payments first, then drafts. */
  readonly entries: readonly OrderEntry[];
  readonly findings: readonly Finding[];
  readonly underWay: readonly UnderWay[];
  /** Charges that are not given back, nor about to be: more than one is double, whatever the reason. */
  readonly heldCharges: number;
}

/**
 * Compares all that both books have of one order, by the same rules as `reconcile`, and repairs nothing. A charge is known
 * to be of an order by its payment or draft alone: one that neither names is found by `reconcile`.
 *
 * @throws what the database or the network said where the books could not be read
 */
export async function compareOrder(books: Books, order: OrderName): Promise<OrderReport> {
  const { prisma, network } = books;
  const comparison = await beginComparison(books, new Date(0));
  const paymentIds = await readOrder(prisma, order);
  // Before ours are read again, as in `findOrphanedCharges`.
  const charges = new Map<string, readonly Charge[]>();
  for (const paymentId of paymentIds) charges.set(paymentId, await network.inNameOf(paymentId));
  const entryOf = await readEntries(prisma, paymentIds);
  const refundsOf = await readRefunds(prisma, paymentIds);
  const refunds = await prisma.refund.findMany({
    where: { paymentId: { in: [...paymentIds] } },
    orderBy: [{ createdAt: 'asc' }, { refundId: 'asc' }],
  });
  const found = paymentIds.map((paymentId) => ({
    ...{ paymentId, entry: entryOf(paymentId), charges: charges.get(paymentId) ?? [] },
    ...{ sums: refundsOf(paymentId), refunds: refunds.filter((refund) => refund.paymentId === paymentId) },
  }));
  for (const { entry, charges: inItsName } of found) {
    for (const charge of inItsName) await compareCharge(comparison, charge, entry, refundsOf);
  }
  const payments = found.flatMap(({ entry: { payment } }) => payment ?? []);
  await judgeLivePayments(
    comparison,
    payments.filter(({ state }) => state === 'authorized'),
  );
  for (const { entry } of found) await judgeOpenDraft(comparison, entry);
  for (const refund of refunds) {
    if (!isYoung(comparison, refund.createdAt.getTime())) await judgeRefund(comparison, refund);
  }
  const { findings, underWay } = comparison;
  const entries = found.flatMap(({ entry, ...both }) => entryOfOrder(entry, both.charges, both.refunds) ?? []);
  const heldCharges = found.flatMap(({ entry, sums, charges: inItsName }) =>
    inItsName.filter((charge) => isStillHeld(charge, entry, sums)),
  ).length;
  return { ...order, entries, findings, underWay, heldCharges };
}

/** Whether anything is wrong with an order, or nothing known of it: somebody has to look. */
export function orderNeedsSomebody({ entries, findings, heldCharges }: OrderReport): boolean {
  return entries.length === 0 || findings.length > 0 || heldCharges > 1;
}

async function judgeOpenDraft(comparison: Comparison, { draft, payment }: Entry): Promise<void> {
  if (draft === undefined || payment !== undefined) return;
  if (!isYoung(comparison, draft.createdAt.getTime())) return judgeDraft(comparison, draft);
  comparison.underWay.push({ subject: 'draft', id: draft.paymentId, why: 'young' });
}

/** What is asked back of a payment is as good as given back; whether it comes to that is another finding's business. */
function isStillHeld(charge: Charge, { payment }: Entry, sums: RefundSums): boolean {
  const isItsOwn = payment !== undefined && belongsTo(charge, payment);
  return isItsOwn ? isHeld(sums, charge) : charge.refundedMinor < charge.amountMinor;
}

/** Undefined where it has gone meanwhile. */
function entryOfOrder(
  { payment, draft }: Entry,
  charges: readonly Charge[],
  refunds: readonly RefundRow[],
): OrderEntry | undefined {
  const row = payment ?? draft;
  if (row === undefined) return undefined;
  const { paymentId, requestId, amountMinor, currency, createdAt } = row;
  const state = payment?.state ?? 'draft';
  return { paymentId, state, requestId, amountMinor, currency, createdAt, charges, refunds };
}
