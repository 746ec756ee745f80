import type { Outbox } from '../outbox/outbox';
import { beginComparison, type Books } from './comparison';
import type { ReconciliationListener } from './events';
import { findAbandonedDrafts } from './find-abandoned-drafts';
import { findOrphanedCharges } from './find-orphaned-charges';
import { findUnfinishedRefunds } from './find-unfinished-refunds';
import { findDuplicatePayments, findUnchargedPayments } from './find-payments';
import {
  type Finding,
  FINDING_KINDS,
  type FindingKind,
  type Outcome,
  type Report,
  type ReportedFinding,
} from './findings';
import { repairAbandonedDraft } from './repair-abandoned-draft';
import { repairOrphanedCharge } from './repair-orphaned-charge';
import { repairDuplicatePayment, repairUnchargedPayment } from './repair-payment';
import { repairCancelledCharge, repairUnfinishedRefund } from './repair-refund';

/** What a reconciliation works with. */
export interface ReconciliationOptions extends Books {
  /** Takes the events of payments that are recorded. */
  readonly outbox: Outbox;
  /** Charges and payments made at this time or later are compared, each with its counterpart of any time. */
  readonly since: Date;
  /** False only looks. */
  readonly repair: boolean;
  /** Told what was found and what became of it. Default: nobody. */
  readonly onEvent?: ReconciliationListener;
}

/**
 * Compares our books with those of the card network (design part 6), and repairs what can be repaired safely. Safe to run
 * at any time, by several at once, and again after it was cut off: what may still be running is left alone, every refund
 * goes by a key derived from that of its charge, and every change of ours is made only while what was found still holds.
 *
 * Between the two comparisons it keeps the ids of the payments it has seen in memory.
 *
 * @throws what the database or the network said where the books could not be read; nothing was repaired then
 */
export async function reconcile(options: ReconciliationOptions): Promise<Report> {
  const { since, repair, onEvent } = options;
  const comparison = await beginComparison(options, since);
  await findOrphanedCharges(comparison);
  await findUnchargedPayments(comparison);
  await findDuplicatePayments(comparison);
  await findAbandonedDrafts(comparison);
  await findUnfinishedRefunds(comparison);

  const { findings: found, underWay, charged, nowMs } = comparison;
  const agreed = charged.size;
  onEvent?.({
    ...{ type: 'compared', found: countByKind(found), agreed, underWay: underWay.length, atMs: nowMs },
  });
  const findings: ReportedFinding[] = [];
  for (const finding of found) {
    const outcome = repair ? await settle(options, finding, agreed) : ({ kind: 'found' } as const);
    if (repair) onEvent?.({ type: 'settled', kind: finding.kind, finding, outcome });
    findings.push({ finding, outcome });
  }
  return { since, repair, agreed, underWay, findings };
}

/** One that fails must not keep the others from being repaired. */
async function settle(options: ReconciliationOptions, finding: Finding, agreed: number): Promise<Outcome> {
  // Of another network, or of an empty database, everything here would be wrong, and the repair a disaster.
  if (agreed === 0) {
    return {
      kind: 'left',
      why: 'the books have no payment in common: is it the right database and the right network? an earlier --since may show',
    };
  }
  try {
    return await repairOne(options, finding);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: 'left', why: `the repair failed, and may be run again: ${reason}` };
  }
}

function repairOne(options: ReconciliationOptions, finding: Finding): Promise<Outcome> {
  switch (finding.kind) {
    case 'orphaned_charge':
      return repairOrphanedCharge(options, finding.charge);
    case 'uncharged_payment':
      return repairUnchargedPayment(options, finding.payment);
    case 'duplicate_payment':
      return repairDuplicatePayment(options, finding);
    case 'abandoned_draft':
      return repairAbandonedDraft(options, finding.draft);
    case 'refund_unfinished':
      return repairUnfinishedRefund(options, finding.refund);
    case 'cancelled_charge':
      return repairCancelledCharge(options, finding);
    case 'amount_mismatch':
    case 'refund_mismatch':
      return Promise.resolve({ kind: 'left', why: 'which book is right is for a person' });
  }
}

function countByKind(findings: readonly Finding[]): Readonly<Record<FindingKind, number>> {
  const count = (kind: FindingKind): number => findings.filter((finding) => finding.kind === kind).length;
  return Object.fromEntries(FINDING_KINDS.map((kind) => [kind, count(kind)])) as Record<FindingKind, number>;
}
