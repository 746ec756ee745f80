import { randomUUID } from 'node:crypto';
import type { Prisma } from '../src/gen/prisma/client';
import type { CreatePaymentRequest, CreatePaymentResponse } from '../src/gen/proto/payments/v1/payments';
import { paymentMessage } from '../src/payments/payment-message';
import { findLivePayment, findPayment, type PaymentRow } from '../src/payments/payment-repository';

/** The two handlers of the bench, chosen by the payment method of a request. */
export type Work = 'small' | 'real';

/** Everybody's account. */
export const SCOPE = 'account-1';

/** What the handlers write to, beside the payments. */
export const CREATE_TABLES = `
CREATE TABLE bench_small (id uuid PRIMARY KEY, order_id text NOT NULL, amount_minor bigint NOT NULL);
CREATE TABLE bench_outbox (id uuid PRIMARY KEY, topic text NOT NULL, aggregate text NOT NULL, payload jsonb NOT NULL);`;

const INSERT_SMALL = 'INSERT INTO bench_small (id, order_id, amount_minor) VALUES ($1::uuid, $2, $3)';
const INSERT_EVENT = 'INSERT INTO bench_outbox (id, topic, aggregate, payload) VALUES ($1::uuid, $2, $3, $4::jsonb)';

/** Writes in a transaction what a request asks for. */
export function perform(tx: Prisma.TransactionClient, request: CreatePaymentRequest): Promise<CreatePaymentResponse> {
  return request.paymentMethod === 'small' ? small(tx, request) : real(tx, request);
}

/** One raw INSERT: the handler that can hide least of what protection costs. */
async function small(
  tx: Prisma.TransactionClient,
  { orderId, amountMinor, currency }: CreatePaymentRequest,
): Promise<CreatePaymentResponse> {
  const paymentId = randomUUID();
  await tx.$executeRawUnsafe(INSERT_SMALL, paymentId, orderId, amountMinor);
  return { payment: paymentMessage({ ...EMPTY_PAYMENT, paymentId, orderId, amountMinor, currency }) };
}

/** Find, create, tell others: what a service does. */
async function real(
  tx: Prisma.TransactionClient,
  { orderId, amountMinor, currency, paymentMethod, metadata }: CreatePaymentRequest,
): Promise<CreatePaymentResponse> {
  const live = await findLivePayment(tx, SCOPE, orderId);
  if (live !== null) throw new Error('an order of the bench is paid once');
  const payment = await tx.payment.create({
    data: {
      ...{ scope: SCOPE, orderId, amountMinor, currency, paymentMethod, metadata, requestId: null },
      ...{ paymentId: randomUUID(), state: 'authorized', authorizationId: 'authorization-1', etag: randomUUID() },
    },
  });
  const event = JSON.stringify({ paymentId: payment.paymentId, amountMinor: String(amountMinor) });
  await tx.$executeRawUnsafe(INSERT_EVENT, randomUUID(), 'payment.created', payment.paymentId, event);
  return { payment: paymentMessage(payment) };
}

/** The safe read: one row by its primary key, or no statement at all for an empty id. */
export async function read(client: Prisma.TransactionClient, paymentId: string): Promise<CreatePaymentResponse> {
  if (paymentId === '') return { payment: paymentMessage(EMPTY_PAYMENT) };
  const payment = await findPayment(client, SCOPE, paymentId);
  if (payment === null) throw new Error('the payment of the bench is gone');
  return { payment: paymentMessage(payment) };
}

const EMPTY_PAYMENT: PaymentRow = {
  ...{ paymentId: randomUUID(), scope: SCOPE, orderId: 'order', amountMinor: 1n, currency: 'EUR', metadata: {} },
  ...{ paymentMethod: 'small', state: 'authorized', authorizationId: 'authorization-1', etag: randomUUID() },
  ...{ requestId: null, createdAt: new Date(), updatedAt: new Date() },
};
