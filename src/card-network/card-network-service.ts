import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { Prisma, PrismaClient } from '../gen/prisma/client';
import type {
  AuthorizeRequest,
  AuthorizeResponse,
  CardNetworkServiceService,
  RefundRequest,
  RefundResponse,
} from '../gen/proto/cardnetwork/v1/cardnetwork';
import {
  type Attempt,
  type FieldViolation,
  invalidArgument,
  StatusError,
  type UnaryHandlers,
} from '../idempotency/index';
import { authorizationMessage, refundMessage } from './authorization-message';
import { listAuthorizations, refundedMinor } from './authorization-pages';

/** Why the bank of a card refuses it, such as `insufficient_funds`; undefined where it does not. */
export type Decide = (request: AuthorizeRequest) => string | undefined;

/** What the simulated card network works with. */
export interface CardNetworkServiceOptions {
  /** For reads; writes go through the transaction of their attempt. */
  readonly prisma: PrismaClient;
  readonly decide: Decide;
}

const MAX_TEXT_LENGTH = 128;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The handlers of cardnetwork.v1.CardNetworkService. */
export function createCardNetworkService({
  prisma,
  decide,
}: CardNetworkServiceOptions): UnaryHandlers<CardNetworkServiceService, Prisma.TransactionClient> {
  return {
    authorize: (request, attempt) => authorize(decide, request, attempt),

    refund: (request, attempt) => refund(request, attempt),

    getAuthorization: async ({ authorizationId }, { scope }) => {
      requireId(authorizationId);
      const row = await prisma.cardNetworkAuthorization.findFirst({ where: { authorizationId, scope } });
      if (row === null) throw noSuchAuthorization();
      const refunded = await refundedMinor(prisma, [row.authorizationId]);
      return { authorization: authorizationMessage(row, refunded.get(row.authorizationId) ?? 0n) };
    },

    listAuthorizations: (request, { scope }) => listAuthorizations(prisma, scope, request),
  };
}

async function authorize(
  decide: Decide,
  request: AuthorizeRequest,
  attempt: Attempt<Prisma.TransactionClient, AuthorizeResponse>,
): Promise<AuthorizeResponse> {
  const { reference, amountMinor, currency, paymentMethod } = request;
  expectAll([
    [isName(reference), 'reference', `expected 1 to ${MAX_TEXT_LENGTH} characters`],
    [amountMinor > 0n, 'amount_minor', 'expected a positive number'],
    [/^[A-Z]{3}$/.test(currency), 'currency', 'expected an ISO 4217 code in upper case'],
    [isName(paymentMethod), 'payment_method', `expected 1 to ${MAX_TEXT_LENGTH} characters`],
  ]);
  const { scope, requestId = '' } = attempt;
  const declineReason = decide(request);
  const state = declineReason === undefined ? 'authorized' : 'declined';
  attempt.publish({ reference, state });
  return attempt.complete(async (tx) => {
    const row = await tx.cardNetworkAuthorization.create({
      data: {
        ...{ authorizationId: randomUUID(), scope, requestId, reference, amountMinor, currency, paymentMethod, state },
        declineReason: declineReason ?? '',
      },
    });
    return { authorization: authorizationMessage(row, 0n) };
  });
}

async function refund(
  { authorizationId, amountMinor }: RefundRequest,
  attempt: Attempt<Prisma.TransactionClient, RefundResponse>,
): Promise<RefundResponse> {
  requireId(authorizationId);
  expectAll([[amountMinor > 0n, 'amount_minor', 'expected a positive number']]);
  const { scope, requestId = '' } = attempt;
  return attempt.complete(async (tx) => {
    const state = 'authorized';
    const found = await tx.cardNetworkAuthorization.findFirst({ where: { authorizationId, scope, state } });
    if (found === null) throw noSuchAuthorization();
    const data = { refundId: randomUUID(), authorizationId: found.authorizationId, scope, requestId, amountMinor };
    return { refund: refundMessage(await tx.cardNetworkRefund.create({ data })) };
  });
}

/** Refuses a request that names every field at fault. */
function expectAll(expectations: readonly (readonly [holds: boolean, field: string, description: string])[]): void {
  const violations: readonly FieldViolation[] = expectations
    .filter(([holds]) => !holds)
    .map(([, field, description]) => ({ field, description }));
  if (violations.length > 0) throw invalidArgument(violations);
}

function requireId(authorizationId: string): void {
  expectAll([[UUID.test(authorizationId), 'authorization_id', 'expected the UUID of an authorization']]);
}

function isName(text: string): boolean {
  return text.length > 0 && text.length <= MAX_TEXT_LENGTH;
}

/** One of somebody else is as unknown as one that never was. */
function noSuchAuthorization(): StatusError {
  return new StatusError(status.NOT_FOUND, 'no such authorization');
}
