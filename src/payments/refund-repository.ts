import { randomUUID } from 'node:crypto';
import type { Prisma } from '../gen/prisma/client';
import type { RefundModel } from '../gen/prisma/models/Refund';
import { findPayment, type PaymentRow } from './payment-repository';

/** A refund as it is stored. */
export type RefundRow = RefundModel;

/** What a refund is made of. */
export type NewRefund = Pick<RefundRow, 'amountMinor' | 'reason' | 'requestId'>;

/**
 * Reads a payment of an account and locks its row until the transaction ends, so that its refunds are added up by one at
 * a time.
 */
export async function lockPayment(
  tx: Prisma.TransactionClient,
  scope: string,
  paymentId: string,
): Promise<PaymentRow | null> {
  await tx.$queryRaw`
    SELECT 1 AS locked FROM payments WHERE payment_id = ${paymentId}::uuid AND scope = ${scope} FOR UPDATE`;
  return findPayment(tx, scope, paymentId);
}

/** What is left to refund of a payment, those refunds counted that are under way. Only with its row locked. */
export async function refundableMinor(
  tx: Prisma.TransactionClient,
  { paymentId, amountMinor }: PaymentRow,
): Promise<bigint> {
  const { _sum } = await tx.refund.aggregate({ where: { paymentId }, _sum: { amountMinor: true } });
  return amountMinor - (_sum.amountMinor ?? 0n);
}

/** Writes a refund that counts from now on, before the card network is asked. Only with the row of its payment locked. */
export function reserveRefund(
  tx: Prisma.TransactionClient,
  { paymentId, scope, currency }: PaymentRow,
  refund: NewRefund,
): Promise<RefundRow> {
  return tx.refund.create({
    data: { ...refund, paymentId, scope, currency, refundId: randomUUID(), state: 'reserved' },
  });
}

/** Notes that the card network gave the money back; null where there is no such refund. To repeat it changes nothing. */
export async function finishRefund(
  tx: Prisma.TransactionClient,
  refundId: string,
  networkRefundId: string,
): Promise<RefundRow | null> {
  await tx.refund.updateMany({ where: { refundId }, data: { state: 'done', networkRefundId } });
  return tx.refund.findUnique({ where: { refundId } });
}
