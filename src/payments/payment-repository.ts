import { randomUUID } from 'node:crypto';
import type { Prisma } from '../gen/prisma/client';
import type { PaymentModel } from '../gen/prisma/models/Payment';

/** A payment as it is stored. */
export type PaymentRow = PaymentModel;

/** What a payment is made of. */
export interface NewPayment {
  /** Default: a new one. */
  readonly paymentId?: string;
  readonly scope: string;
  readonly orderId: string;
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly paymentMethod: string;
  readonly authorizationId: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** The key of the request that made it. */
  readonly requestId: string | undefined;
}

/** Writes a payment that is authorized; undefined where its order has a live one already. */
export async function insertPaymentIfUnpaid(
  tx: Prisma.TransactionClient,
  { metadata, requestId, ...payment }: NewPayment,
): Promise<PaymentRow | undefined> {
  const data = {
    paymentId: randomUUID(),
    ...payment,
    metadata: { ...metadata },
    requestId: requestId ?? null,
    state: 'authorized',
    etag: randomUUID(),
  };
  // ON CONFLICT DO NOTHING: an error would abort the transaction, which has still to record the refusal.
  const [written] = await tx.payment.createManyAndReturn({ data: [data], skipDuplicates: true });
  return written;
}

/** Reads the live payment of an order. */
export function findLivePayment(
  client: Prisma.TransactionClient,
  scope: string,
  orderId: string,
): Promise<PaymentRow | null> {
  return client.payment.findFirst({ where: { scope, orderId, state: 'authorized' } });
}

/** Reads a payment of an account. */
export function findPayment(
  client: Prisma.TransactionClient,
  scope: string,
  paymentId: string,
): Promise<PaymentRow | null> {
  return client.payment.findFirst({ where: { paymentId, scope } });
}

/** Sets a payment of an account to cancelled, once; a cancelled one stays as it is. */
export async function cancelPayment(
  tx: Prisma.TransactionClient,
  scope: string,
  paymentId: string,
): Promise<PaymentRow | null> {
  await tx.payment.updateMany({
    where: { paymentId, scope, state: { not: 'cancelled' } },
    data: { state: 'cancelled', etag: randomUUID() },
  });
  return findPayment(tx, scope, paymentId);
}

/** Which payments a page holds. */
export interface Page {
  readonly scope: string;
  /** Only of this order; empty for all. */
  readonly orderId: string;
  /** At most this many. */
  readonly size: number;
  /** The page begins behind this payment; undefined for the first. */
  readonly after: string | undefined;
}

/** Reads a page of an account's payments, newest first. The place of a payment in the list never changes. */
export function listPayments(
  client: Prisma.TransactionClient,
  { scope, orderId, size, after }: Page,
): Promise<readonly PaymentRow[]> {
  return client.payment.findMany({
    where: orderId === '' ? { scope } : { scope, orderId },
    orderBy: [{ createdAt: 'desc' }, { paymentId: 'desc' }],
    take: size,
    ...(after === undefined ? {} : { cursor: { paymentId: after, scope }, skip: 1 }),
  });
}

/** What is written onto a payment. */
export interface PaymentChange {
  readonly scope: string;
  readonly paymentId: string;
  /** What the writer has seen. */
  readonly etag: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Replaces the metadata of a payment that is still at `etag`; whether it did. */
export async function updatePaymentIfUnchanged(
  tx: Prisma.TransactionClient,
  { scope, paymentId, etag, metadata }: PaymentChange,
): Promise<boolean> {
  const { count } = await tx.payment.updateMany({
    where: { paymentId, scope, etag },
    data: { metadata: { ...metadata }, etag: randomUUID() },
  });
  return count > 0;
}
