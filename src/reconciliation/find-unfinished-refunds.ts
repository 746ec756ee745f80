import type { RefundRow } from '../payments/refund-repository';
import type { Comparison } from './comparison';
import { leftRequest } from './find-abandoned-drafts';
import { reservedBefore } from './own-books';

/**
 * Goes through the refunds that are reserved, whatever `since` says: each keeps its amount from being refunded for as long
 * as it stands, and nobody knows whether the money was given back.
 */
export async function findUnfinishedRefunds(comparison: Comparison): Promise<void> {
  const { prisma, nowMs, quietMs } = comparison;
  for await (const page of reservedBefore(prisma, new Date(nowMs - quietMs))) {
    for (const refund of page) await judgeRefund(comparison, refund);
  }
}

/** Judges one refund that is no longer young; one that is done is in order. */
export async function judgeRefund(comparison: Comparison, refund: RefundRow): Promise<void> {
  const { findings, nowMs, prisma, refundRecordOf, underWay } = comparison;
  const { refundId, paymentId, scope, amountMinor, currency, requestId, createdAt } = refund;
  if (refund.state !== 'reserved') return;
  const request = leftRequest(comparison, await refundRecordOf(refund));
  // Last: one that was noted as made meanwhile is none.
  const now = await prisma.refund.findUnique({ where: { refundId } });
  if (now?.state !== 'reserved') return;
  if (request === 'under_way') {
    underWay.push({ subject: 'refund', id: refundId, why: 'claimed' });
    return;
  }
  const payment = await prisma.payment.findUnique({ where: { paymentId } });
  const { orderId, authorizationId } = payment ?? {};
  const found = { refundId, paymentId, scope, orderId, authorizationId, amountMinor, currency, requestId };
  findings.push({ kind: 'refund_unfinished', refund: { ...found, ageMs: nowMs - createdAt.getTime() }, request });
}
