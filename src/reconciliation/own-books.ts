import type { PrismaClient } from '../gen/prisma/client';
import type { PaymentDraftRow } from '../payments/draft-repository';
import type { PaymentRow } from '../payments/payment-repository';
import type { RefundRow } from '../payments/refund-repository';
import { isUuid } from './is-uuid';

const PAGE_SIZE = 500;

/** What our books say under the id of a payment. */
export interface Entry {
  readonly draft: PaymentDraftRow | undefined;
  readonly payment: PaymentRow | undefined;
}

/** Refunds of a payment, in the smallest unit of its currency. */
export interface RefundSums {
  readonly doneMinor: bigint;
  /** With those that are under way. */
  readonly askedMinor: bigint;
}

const NO_REFUNDS: RefundSums = { doneMinor: 0n, askedMinor: 0n };

/**
 * Reads what stands under the ids of payments. A draft becomes a payment in one transaction: drafts are read first, so
 * that one which does so meanwhile is seen twice rather than never.
 */
export async function readEntries(
  prisma: PrismaClient,
  references: readonly string[],
): Promise<(reference: string) => Entry> {
  const where = { paymentId: { in: references.filter(isUuid) } };
  const drafts = new Map((await prisma.paymentDraft.findMany({ where })).map((row) => [row.paymentId, row]));
  const payments = new Map((await prisma.payment.findMany({ where })).map((row) => [row.paymentId, row]));
  return (reference) => ({ draft: drafts.get(reference), payment: payments.get(reference) });
}

/** The ids of the payments of an order, the oldest first, then those of its drafts. */
export async function readOrder(
  prisma: PrismaClient,
  { scope, orderId }: { readonly scope: string; readonly orderId: string },
): Promise<readonly string[]> {
  const where = { scope, orderId };
  // In this order: a draft that becomes a payment meanwhile is seen twice rather than never.
  const drafts = await prisma.paymentDraft.findMany({ where });
  const payments = await prisma.payment.findMany({ where, orderBy: [{ createdAt: 'asc' }, { paymentId: 'asc' }] });
  return [...new Set([...payments, ...drafts].map(({ paymentId }) => paymentId))];
}

/** Adds up the refunds of payments. */
export async function readRefunds(
  prisma: Pick<PrismaClient, 'refund'>,
  paymentIds: readonly string[],
): Promise<(paymentId: string) => RefundSums> {
  const groups = await prisma.refund.groupBy({
    by: ['paymentId', 'state'],
    where: { paymentId: { in: [...paymentIds] } },
    _sum: { amountMinor: true },
  });
  const sums = new Map<string, RefundSums>();
  for (const { paymentId, state, _sum } of groups) {
    const { doneMinor, askedMinor } = sums.get(paymentId) ?? NO_REFUNDS;
    const amount = _sum.amountMinor ?? 0n;
    sums.set(paymentId, {
      doneMinor: doneMinor + (state === 'done' ? amount : 0n),
      askedMinor: askedMinor + amount,
    });
  }
  return (paymentId) => sums.get(paymentId) ?? NO_REFUNDS;
}

/** Live payments of all accounts made at a time or later, in pages, oldest first. */
export async function* livePayments(prisma: PrismaClient, since: Date): AsyncIterable<readonly PaymentRow[]> {
  let last: string | undefined;
  for (;;) {
    const page = await prisma.payment.findMany({
      // Of all states: a page goes on behind its last row, which must not leave the list meanwhile.
      where: { createdAt: { gte: since } },
      orderBy: [{ createdAt: 'asc' }, { paymentId: 'asc' }],
      take: PAGE_SIZE,
      ...(last === undefined ? {} : { cursor: { paymentId: last }, skip: 1 }),
    });
    yield page.filter(({ state }) => state === 'authorized');
    if (page.length < PAGE_SIZE) return;
    last = page.at(-1)?.paymentId;
  }
}

/** Drafts of all accounts made before a time, in pages. */
export async function* draftsBefore(prisma: PrismaClient, before: Date): AsyncIterable<readonly PaymentDraftRow[]> {
  let last: string | undefined;
  for (;;) {
    // By the id of the last one and not by its row, which may have gone meanwhile.
    const page: readonly PaymentDraftRow[] = await prisma.paymentDraft.findMany({
      where: { createdAt: { lt: before }, ...(last === undefined ? {} : { paymentId: { gt: last } }) },
      orderBy: { paymentId: 'asc' },
      take: PAGE_SIZE,
    });
    yield page;
    if (page.length < PAGE_SIZE) return;
    last = page.at(-1)?.paymentId;
  }
}

/** Refunds of all accounts that are reserved since before a time, in pages. */
export async function* reservedBefore(prisma: PrismaClient, before: Date): AsyncIterable<readonly RefundRow[]> {
  let last: string | undefined;
  for (;;) {
    // By the id of the last one, as of drafts.
    const page: readonly RefundRow[] = await prisma.refund.findMany({
      where: {
        state: 'reserved',
        createdAt: { lt: before },
        ...(last === undefined ? {} : { refundId: { gt: last } }),
      },
      orderBy: { refundId: 'asc' },
      take: PAGE_SIZE,
    });
    yield page;
    if (page.length < PAGE_SIZE) return;
    last = page.at(-1)?.refundId;
  }
}

/**
 * Live payments of the orders that have several, by order, the oldest first; only orders of which one was made at a time
 * or later. A unique index forbids them, until a restore or a hand has taken it away.
 */
export async function ordersPaidTwice(prisma: PrismaClient, since: Date): Promise<readonly (readonly PaymentRow[])[]> {
  const orders = await prisma.$queryRaw<{ scope: string; orderId: string }[]>`
    SELECT DISTINCT payment.scope, payment.order_id AS "orderId" FROM payments AS payment
    WHERE payment.state = 'authorized' AND payment.created_at >= ${since.toISOString()}::timestamptz
      AND EXISTS (SELECT FROM payments AS other
                  WHERE other.scope = payment.scope AND other.order_id = payment.order_id
                    AND other.state = 'authorized' AND other.payment_id <> payment.payment_id)`;
  const found: (readonly PaymentRow[])[] = [];
  for (const order of orders) {
    found.push(
      await prisma.payment.findMany({
        where: { ...order, state: 'authorized' },
        orderBy: [{ createdAt: 'asc' }, { paymentId: 'asc' }],
      }),
    );
  }
  return found;
}
