import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { Prisma } from '../gen/prisma/client';
import type { CreatePaymentRequest, CreatePaymentResponse } from '../gen/proto/payments/v1/payments';
import { type Attempt, invalidArgument, reject, type Rejection, StatusError } from '../idempotency/index';
import { receiptRequested } from '../receipts/receipt-event';
import type { Authorization } from './authorizer';
import { CARD_DECLINED, ORDER_ALREADY_PAID, ORDER_PAYMENT_IN_PROGRESS, PAYMENTS_DOMAIN } from './domain';
import { insertDraftIfFirst, removeDraft } from './draft-repository';
import { paymentViolations } from './payment';
import { paymentMessage } from './payment-message';
import { findLivePayment, findPayment, insertPaymentIfUnpaid, type PaymentRow } from './payment-repository';
import { paymentResource } from './payment-resource';
import type { PaymentsServiceOptions } from './payments-service';

/** How soon a caller is asked to come back while another request pays its order: about as long as a card network takes. */
const ORDER_RETRY_MS = 1_000;

type CreateAttempt = Attempt<Prisma.TransactionClient, CreatePaymentResponse>;

/** What the first phase decides, as it is stored. */
type Draft =
  | { readonly kind: 'drafted'; readonly paymentId: string }
  /** The order has this live payment. */
  | { readonly kind: 'paid'; readonly paymentId: string };

/**
 * Makes a payment in steps that a later attempt goes on from: a draft is written, the card network is asked, and what it
 * said is recorded with the payment and the event that asks for a receipt. Of two requests for one order, one has the
 * draft and the other asks nobody for money. An order that was paid and a card that was declined are answers, recorded
 * and replayed.
 *
 * @throws StatusError INVALID_ARGUMENT that names every field at fault; ABORTED with `ORDER_PAYMENT_IN_PROGRESS`, to
 *   come again; UNAVAILABLE while it is not known whether the amount is held
 */
export async function createPayment(
  options: PaymentsServiceOptions,
  request: CreatePaymentRequest,
  attempt: CreateAttempt,
): Promise<CreatePaymentResponse | Rejection> {
  const violations = paymentViolations(request);
  if (violations.length > 0) throw invalidArgument(violations);
  attempt.publish({ order_id: request.orderId });
  const draft = await attempt.phase('draft', (tx) => writeAndName(tx, request, attempt), {
    begins: ({ kind }) => (kind === 'drafted' ? 'charge' : undefined),
  });
  const { paymentId } = draft;
  // Also by an attempt that found the draft written.
  attempt.publish({ payment_id: paymentId, resource: paymentResource(draft) });
  if (draft.kind === 'paid') return attempt.complete(() => Promise.resolve(alreadyPaid(paymentId)));

  const { amountMinor, currency, paymentMethod } = request;
  const charge = await attempt.effect('charge', (requestId, call) =>
    options.authorizer.authorize({ paymentId, amountMinor, currency, paymentMethod }, { requestId, ...call }),
  );
  if (charge.kind === 'authorized') attempt.publish({ authorization_id: charge.authorizationId });
  const outcome = await attempt.complete((tx) => record(tx, { options, request, attempt, paymentId, charge }));
  if ('payment' in outcome) options.onPaymentCreated();
  return outcome;
}

/** The payment is named in the transaction that drafts it: from then on duplicates are told which one it is. */
async function writeAndName(
  tx: Prisma.TransactionClient,
  request: CreatePaymentRequest,
  attempt: CreateAttempt,
): Promise<Draft> {
  const draft = await writeDraft(tx, request, attempt);
  attempt.publish({ resource: paymentResource(draft) });
  return draft;
}

async function writeDraft(
  tx: Prisma.TransactionClient,
  { orderId, amountMinor, currency, paymentMethod, metadata }: CreatePaymentRequest,
  { scope, requestId = '' }: CreateAttempt,
): Promise<Draft> {
  const paymentId = randomUUID();
  const draft = { paymentId, scope, orderId, amountMinor, currency, paymentMethod, metadata, requestId };
  const isFirst = await insertDraftIfFirst(tx, draft);
  // Only now: a draft that was waited for may have become a payment.
  const live = await findLivePayment(tx, scope, orderId);
  if (live !== null) {
    if (isFirst) await removeDraft(tx, paymentId);
    return { kind: 'paid', paymentId: live.paymentId };
  }
  if (!isFirst) throw orderInProgress();
  return { kind: 'drafted', paymentId };
}

/** Whoever comes again is told how the other request ended: that the order is paid, or it may pay itself. */
function orderInProgress(): StatusError {
  const info = { reason: ORDER_PAYMENT_IN_PROGRESS, domain: PAYMENTS_DOMAIN };
  const text = 'another request is paying this order: ask again with the same key when it has ended';
  return new StatusError(status.ABORTED, text, [], info, { afterMs: ORDER_RETRY_MS });
}

/** What a payment is recorded from. */
interface Charged {
  readonly options: PaymentsServiceOptions;
  readonly request: CreatePaymentRequest;
  readonly attempt: CreateAttempt;
  readonly paymentId: string;
  readonly charge: Authorization;
}

async function record(
  tx: Prisma.TransactionClient,
  { options, request, attempt, paymentId, charge }: Charged,
): Promise<CreatePaymentResponse | Rejection> {
  const isOurs = await removeDraft(tx, paymentId);
  if (charge.kind === 'declined') return declined(charge.reason);
  const { scope, requestId } = attempt;
  if (!isOurs) return recorded(await findPayment(tx, scope, paymentId));
  const { orderId, amountMinor, currency, paymentMethod, metadata } = request;
  const { authorizationId } = charge;
  const payment = await insertPaymentIfUnpaid(tx, {
    ...{ paymentId, scope, requestId, orderId, amountMinor, currency, paymentMethod, metadata, authorizationId },
  });
  // No draft stood in the way of whoever wrote it. The charge is found by who compares with the card network.
  if (payment === undefined) throw new Error('charged, and the order has another live payment');
  await options.outbox.add(tx, receiptRequested(payment));
  attempt.publish({ state: payment.state });
  return { payment: paymentMessage(payment) };
}

/**
 * Without a draft the payment was recorded by whoever compared our books with those of the card network; or this attempt
 * was overtaken, and its fence says so.
 */
function recorded(payment: PaymentRow | null): CreatePaymentResponse {
  if (payment === null) throw new Error('charged, and the draft of the payment is gone: its order is for a person');
  return { payment: paymentMessage(payment) };
}

/** The record goes on naming the payment, of which there is none: by its id the card network knows what it declined. */
function declined(reason: string): Rejection {
  const info = { reason: CARD_DECLINED, domain: PAYMENTS_DOMAIN, metadata: { decline_reason: reason } };
  return reject(new StatusError(status.FAILED_PRECONDITION, 'the card was declined', [], info));
}

function alreadyPaid(paymentId: string): Rejection {
  return reject(
    new StatusError(status.ALREADY_EXISTS, `the order has a live payment, ${paymentId}`, [], {
      reason: ORDER_ALREADY_PAID,
      domain: PAYMENTS_DOMAIN,
      metadata: { payment_id: paymentId },
    }),
  );
}
