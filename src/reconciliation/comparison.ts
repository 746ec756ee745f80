import type { PrismaClient } from '../gen/prisma/client';
import type { RequestStatus, SeenRecord } from '../idempotency/index';
import type { PaymentRow } from '../payments/payment-repository';
import type { Charge, Finding, FoundPayment, UnderWay } from './findings';
import type { NetworkBooks } from './network-books';
import { readRefunds, type RefundSums } from './own-books';

/** What is compared, and what is left alone. */
export interface Books {
  readonly prisma: PrismaClient;
  readonly network: NetworkBooks;
  /** Where a CreatePayment stands; undefined for a text that is no key. */
  readonly statusOf: (request: {
    readonly scope: string;
    readonly requestId: string;
  }) => Promise<RequestStatus | undefined>;
  /** The record of a CreatePayment; undefined where there is none, also of one that outlived its day. */
  readonly recordOf: (request: {
    readonly scope: string;
    readonly requestId: string;
  }) => Promise<SeenRecord | undefined>;
  /** The same of a RefundPayment. */
  readonly refundRecordOf: (request: {
    readonly scope: string;
    readonly requestId: string;
  }) => Promise<SeenRecord | undefined>;
  /** What is younger is left alone, milliseconds: no less than an attempt may run. */
  readonly quietMs: number;
  /** For how long after its last lease somebody may come back for a half-finished request, milliseconds. */
  readonly resumedWithinMs: number;
}

/**
 * How repairs change our books: who waited for the lock of a payment must then see its refunds, which a transaction of a
 * stricter level, such as a database may have by default, does not.
 */
export const SEEING_OTHERS = { isolationLevel: 'ReadCommitted' } as const;

/** A comparison under way: what it has found so far. */
export interface Comparison extends Books {
  /** By the database clock, milliseconds since 1970. */
  readonly nowMs: number;
  readonly since: Date;
  /** Payments whose charge was seen. */
  readonly charged: Set<string>;
  readonly findings: Finding[];
  readonly underWay: UnderWay[];
}

/** Begins a comparison with nothing found. Rejects when the database can't be read. */
export async function beginComparison(books: Books, since: Date): Promise<Comparison> {
  const [clock] = await books.prisma.$queryRaw<{ nowMs: number }[]>`
    SELECT (extract(epoch FROM now()) * 1000)::float8 AS "nowMs"`;
  if (clock === undefined) throw new Error('the database told no time');
  return { ...books, since, nowMs: clock.nowMs, charged: new Set(), findings: [], underWay: [] };
}

/** Whether something was made so recently that an attempt may still be about to record it. */
export function isYoung({ nowMs, quietMs }: Comparison, createdAtMs: number): boolean {
  return createdAtMs > nowMs - quietMs;
}

/** Whether an attempt may still go on with a request, now or when its caller comes back. */
export async function isClaimed(
  { statusOf }: Pick<Books, 'statusOf'>,
  { scope, requestId }: { readonly scope: string; readonly requestId: string | null },
): Promise<boolean> {
  return requestId !== null && (await statusOf({ scope, requestId }))?.kind === 'in_progress';
}

/** Whether a charge is the one of a payment: both name each other. */
export function belongsTo(charge: Charge, payment: PaymentRow): boolean {
  return payment.authorizationId === charge.authorizationId && payment.paymentId === charge.reference;
}

/** What a finding tells of a payment. */
export function foundPayment(row: PaymentRow): FoundPayment {
  const { paymentId, scope, orderId, authorizationId, amountMinor, currency } = row;
  return { paymentId, scope, orderId, authorizationId, amountMinor, currency };
}

/** Notes that a payment has its charge, and compares what both say. */
export async function comparePair(
  comparison: Comparison,
  { payment, charge, refunds }: { readonly payment: PaymentRow; readonly charge: Charge; readonly refunds: RefundSums },
): Promise<void> {
  const { charged, findings } = comparison;
  if (charged.has(payment.paymentId)) return;
  charged.add(payment.paymentId);
  if (payment.amountMinor !== charge.amountMinor || payment.currency !== charge.currency) {
    findings.push({ kind: 'amount_mismatch', payment: foundPayment(payment), charge });
  }
  // It was asked back in the transaction that cancelled it, which was read before its refunds.
  if (payment.state === 'cancelled' && isHeld(refunds, charge)) {
    findings.push({ kind: 'cancelled_charge', payment: foundPayment(payment), charge });
  }
  if (agree(refunds, refunds, charge)) return;
  const [before, now, after] = await lookAgain(comparison, payment, charge);
  if (agree(before, after, now)) return;
  findings.push({ kind: 'refund_mismatch', payment: foundPayment(payment), charge: now, ...after });
}

/** Whether something of a charge is held that was not given back, nor asked back by the payment it belongs to. */
export function isHeld({ askedMinor }: RefundSums, { amountMinor, refundedMinor }: Charge): boolean {
  return refundedMinor < amountMinor && askedMinor < amountMinor;
}

/** What is done here was given back there, and nothing was given back there that was not asked for here. */
function agree(before: RefundSums, after: RefundSums, { refundedMinor }: Charge): boolean {
  return before.doneMinor <= refundedMinor && refundedMinor <= after.askedMinor;
}

/** A refund that is made meanwhile is seen by one book before the other: ours is read before and after. */
async function lookAgain(
  { prisma, network }: Comparison,
  { paymentId }: PaymentRow,
  charge: Charge,
): Promise<readonly [RefundSums, Charge, RefundSums]> {
  const before = (await readRefunds(prisma, [paymentId]))(paymentId);
  const now = (await network.find(charge.authorizationId)) ?? charge;
  const after = (await readRefunds(prisma, [paymentId]))(paymentId);
  return [before, now, after];
}
