import { type Payment, PaymentState, type Refund } from '../gen/proto/payments/v1/payments';
import { timestamp } from '../timestamp';
import type { PaymentRow } from './payment-repository';
import type { RefundRow } from './refund-repository';

/** The message that an account sees of its payment. */
export function paymentMessage(row: PaymentRow): Payment {
  return {
    paymentId: row.paymentId,
    orderId: row.orderId,
    amountMinor: row.amountMinor,
    currency: row.currency,
    state: stateMessage(row.state),
    authorizationId: row.authorizationId,
    metadata: row.metadata as Record<string, string>,
    etag: row.etag,
    createTime: timestamp(row.createdAt),
    updateTime: timestamp(row.updatedAt),
  };
}

/** The message that an account sees of its refund. */
export function refundMessage(row: RefundRow): Refund {
  const { refundId, paymentId, amountMinor, currency, reason } = row;
  return { refundId, paymentId, amountMinor, currency, reason, createTime: timestamp(row.createdAt) };
}

function stateMessage(state: string): PaymentState {
  switch (state) {
    case 'authorized':
      return PaymentState.PAYMENT_STATE_AUTHORIZED;
    case 'cancelled':
      return PaymentState.PAYMENT_STATE_CANCELLED;
    default:
      throw new Error(`unknown state of a payment: ${state}`);
  }
}
