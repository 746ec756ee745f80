import type { SeenRecord } from '../idempotency/index';
import type { PaymentDraftRow } from '../payments/draft-repository';
import type { Books, Comparison } from './comparison';
import { judgeCharge } from './find-orphaned-charges';
import type { Charge, LeftRequest } from './findings';
import { draftsBefore, readEntries } from './own-books';

/**
 * Goes through the drafts, whatever `since` says: each keeps its order from being paid for as long as it stands. One
 * without a charge is found when nobody goes on with it; the charge of one that has one is found as such, however old.
 */
export async function findAbandonedDrafts(comparison: Comparison): Promise<void> {
  const { prisma, nowMs, quietMs } = comparison;
  for await (const page of draftsBefore(prisma, new Date(nowMs - quietMs))) {
    for (const draft of page) await judgeDraft(comparison, draft);
  }
}

/** Judges one draft that is no longer young. */
export async function judgeDraft(comparison: Comparison, draft: PaymentDraftRow): Promise<void> {
  const { findings, network, prisma, recordOf, underWay } = comparison;
  const { paymentId, scope, orderId, amountMinor, currency, requestId } = draft;
  const held = heldOf(await network.inNameOf(paymentId));
  const request = leftRequest(comparison, await recordOf(draft));
  // Last: a draft that has become a payment meanwhile is none, and what was said of it is over.
  const entry = (await readEntries(prisma, [paymentId]))(paymentId);
  if (entry.draft === undefined) return;
  if (held.length > 0) {
    for (const charge of held) {
      if (!isNoted(comparison, charge)) await judgeCharge(comparison, charge, entry);
    }
  } else if (request === 'under_way') underWay.push({ subject: 'draft', id: paymentId, why: 'claimed' });
  else {
    const found = { paymentId, scope, orderId, amountMinor, currency, requestId };
    findings.push({ kind: 'abandoned_draft', draft: found, request });
  }
}

/** Charges of which something is still held. */
export function heldOf(charges: readonly Charge[]): readonly Charge[] {
  return charges.filter(({ refundedMinor, amountMinor }) => refundedMinor < amountMinor);
}

/** `under_way` where an attempt runs, or where somebody may still come back for a half-finished request. */
export function leftRequest(
  { resumedWithinMs }: Pick<Books, 'resumedWithinMs'>,
  record: SeenRecord | undefined,
): LeftRequest | 'under_way' {
  // One that outlived its day is never resumed.
  if (record === undefined || record.keptAt !== undefined) return 'none';
  if (record.state !== 'claimed') return record.state;
  return isResumable(record, resumedWithinMs) ? 'under_way' : 'claimed';
}

/** Whether the request of a draft was begun, and its last lease ended so long ago that nobody comes back for it. */
export async function isLeftBehind(books: Books, draft: PaymentDraftRow): Promise<boolean> {
  return leftRequest(books, await books.recordOf(draft)) === 'claimed';
}

/** Whether a claimed request runs, or had its last attempt so recently that there may be another one. */
export function isResumable({ leaseLeftMs }: SeenRecord, withinMs: number): boolean {
  return leaseLeftMs > -withinMs;
}

function isNoted({ findings, underWay }: Comparison, { authorizationId }: Charge): boolean {
  return (
    findings.some((found) => found.kind === 'orphaned_charge' && found.charge.authorizationId === authorizationId) ||
    underWay.some(({ subject, id }) => subject === 'charge' && id === authorizationId)
  );
}
