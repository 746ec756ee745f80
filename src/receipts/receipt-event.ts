import { SendReceiptRequest } from '../gen/proto/receipts/v1/receipts';
import type { NewEvent } from '../outbox/event';

/** The type of events that ask for a receipt: what is to be called. */
export const RECEIPT_REQUESTED = 'receipts.v1.ReceiptsService/SendReceipt';

/** What a receipt says. */
export type ReceiptContent = Pick<SendReceiptRequest, 'paymentId' | 'orderId' | 'amountMinor' | 'currency'>;

/** The event that asks for the receipt of a payment: `outbox.add(tx, receiptRequested(payment))`. */
export function receiptRequested({ paymentId, orderId, amountMinor, currency }: ReceiptContent): NewEvent {
  return {
    aggregateType: 'payment',
    aggregateId: paymentId,
    type: RECEIPT_REQUESTED,
    payload: SendReceiptRequest.encode({ paymentId, orderId, amountMinor, currency }).finish(),
  };
}
