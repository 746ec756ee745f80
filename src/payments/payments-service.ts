import { status } from '@grpc/grpc-js';
import type { Prisma, PrismaClient } from '../gen/prisma/client';
import type { PaymentsServiceService } from '../gen/proto/payments/v1/payments';
import { invalidArgument, StatusError, type UnaryHandlers } from '../idempotency/index';
import type { Authorizer } from './authorizer';
import { paymentIdViolations, paymentViolations } from './payment';
import { paymentMessage } from './payment-message';
import { cancelPayment, findPayment, insertPayment, type PaymentRow } from './payment-repository';

/** What the service works with. */
export interface PaymentsServiceOptions {
  /** For reads; writes go through the transaction of their attempt. */
  readonly prisma: PrismaClient;
  readonly authorizer: Authorizer;
  /** Called once per payment, after it was committed. */
  readonly onPaymentCreated: () => void;
}

/** The handlers of payments.v1.PaymentsService. */
export function createPaymentsService({
  prisma,
  authorizer,
  onPaymentCreated,
}: PaymentsServiceOptions): UnaryHandlers<PaymentsServiceService, Prisma.TransactionClient> {
  return {
    createPayment: async (request, attempt) => {
      const violations = paymentViolations(request);
      if (violations.length > 0) throw invalidArgument(violations);
      attempt.publish({ order_id: request.orderId });
      const authorizationId = await authorizer.authorize(request);
      attempt.publish({ authorization_id: authorizationId });
      const { scope, requestId } = attempt;
      const response = await attempt.complete(async (tx) => {
        const { orderId, amountMinor, currency, paymentMethod, metadata } = request;
        const payment = await insertPayment(tx, {
          ...{ scope, requestId, orderId, amountMinor, currency, paymentMethod, metadata, authorizationId },
        });
        attempt.publish({ payment_id: payment.paymentId, state: payment.state });
        return { payment: paymentMessage(payment) };
      });
      onPaymentCreated();
      return response;
    },

    getPayment: async ({ paymentId }, { scope }) => {
      requirePaymentId(paymentId);
      return { payment: paymentMessage(found(await findPayment(prisma, scope, paymentId))) };
    },

    cancelPayment: async ({ paymentId }, attempt) => {
      requirePaymentId(paymentId);
      return attempt.complete(async (tx) => {
        const payment = await cancelPayment(tx, attempt.scope, paymentId);
        return { payment: paymentMessage(found(payment)) };
      });
    },
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
