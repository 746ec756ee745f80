import { SendReceiptRequest } from '../gen/proto/receipts/v1/receipts';
import { Metadata } from '../idempotency/index';
import type { Deliver } from '../outbox/relay-options';
import { RECEIPT_REQUESTED } from './receipt-event';
import type { ReceiptsClient } from './receipts-client';

/**
 * Delivers events that ask for a receipt, and rejects all others: a relay of an outbox that holds those too, as the one of
 * the payments service does, has `deliver: createRefundDelivery({ prisma, authorizer }, createReceiptDelivery(receipts))`.
 * The key of the call is the id of the event, so that the mail goes out once however often the event is delivered.
 *
 * @param client of ReceiptsService; its `timeoutMs` is at least the time of a delivery
 */
export function createReceiptDelivery(client: Pick<ReceiptsClient, 'sendReceipt'>): Deliver {
  return async ({ id, type, payload, headers }, { signal, timeoutMs }) => {
    // It stays in the outbox, for a relay that is newer than this one, and for whoever looks.
    if (type !== RECEIPT_REQUESTED) throw new Error(`no consumer is known for events of the type ${type}`);
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    await client.sendReceipt(SendReceiptRequest.decode(payload), { requestId: id, metadata, signal, timeoutMs });
  };
}
