import type { Prisma } from '../gen/prisma/client';
import type { PaymentRow } from '../payments/payment-repository';
import { refundableMinor } from '../payments/refund-repository';
import type { Charge } from './findings';
import { readRefunds } from './own-books';

/**
 * How much of a payment a repair may give back: what neither our books nor those of the network say was asked for or given
 * back. Only with the row of the payment locked, and with a charge that was read as late as possible.
 *
 * @returns `under_way` where a refund of ours may or may not be among those that the network tells of
 */
export async function returnableMinor(
  tx: Prisma.TransactionClient,
  payment: PaymentRow,
  { amountMinor, refundedMinor }: Charge,
): Promise<bigint | 'under_way'> {
  const { doneMinor, askedMinor } = (await readRefunds(tx, [payment.paymentId]))(payment.paymentId);
  // One that we don't know may be what it tells of: then ours comes on top.
  if (refundedMinor > doneMinor && askedMinor > doneMinor) return 'under_way';
  const heldMinor = amountMinor - refundedMinor;
  const leftMinor = await refundableMinor(tx, payment);
  return leftMinor < heldMinor ? leftMinor : heldMinor;
}

/** Why a repair leaves it alone then. */
export const REFUND_UNDER_WAY = 'a refund of it is under way: run this again after it';
