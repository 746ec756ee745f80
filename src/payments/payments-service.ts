import { status } from '@grpc/grpc-js';
import type { Prisma, PrismaClient } from '../gen/prisma/client';
import type { PaymentsServiceService } from '../gen/proto/payments/v1/payments';
import { invalidArgument, StatusError, type UnaryHandlers } from '../idempotency/index';
import type { Outbox } from '../outbox/outbox';
import type { Authorizer } from './authorizer';
import { cancelPayment } from './cancel-payment';
import { createPayment } from './create-payment';
import { paymentIdViolations } from './payment';
import { paymentMessage } from './payment-message';
import { listPage } from './payment-pages';
import { findPayment, type PaymentRow } from './payment-repository';
import { refundPayment } from './refund-payment';
import { updatePayment } from './update-payment';

/** What the service works with. */
export interface PaymentsServiceOptions {
  /** For reads; writes go through the transaction of their attempt. */
  readonly prisma: PrismaClient;
  readonly authorizer: Authorizer;
  /** Takes the events that ask for receipts, and for the refunds of cancelled payments. */
  readonly outbox: Outbox;
  /** Called once per payment, after it was committed. */
  readonly onPaymentCreated: () => void;
}

/** The handlers of payments.v1.PaymentsService. */
export function createPaymentsService(
  options: PaymentsServiceOptions,
): UnaryHandlers<PaymentsServiceService, Prisma.TransactionClient> {
  const { prisma } = options;
  return {
    createPayment: (request, attempt) => createPayment(options, request, attempt),

    refundPayment: (request, attempt) => refundPayment(options, request, attempt),

    getPayment: async ({ paymentId }, { scope }) => {
      requirePaymentId(paymentId);
      return { payment: paymentMessage(found(await findPayment(prisma, scope, paymentId))) };
    },

    listPayments: (request, { scope }) => listPage(prisma, scope, request),

    updatePayment: (request, attempt) => updatePayment(request, attempt),

    cancelPayment: (request, attempt) => cancelPayment(options, request, attempt),
  };
}

function requirePaymentId(paymentId: string): void {
  const violations = paymentIdViolations(paymentId);
  if (violations.length > 0) throw invalidArgument(violations);
}

/** A payment of somebody else is as unknown as one that never was. */
function found(payment: PaymentRow | null): PaymentRow {
  if (payment === null) throw new StatusError(status.NOT_FOUND, 'no such payment');
  return payment;
}
