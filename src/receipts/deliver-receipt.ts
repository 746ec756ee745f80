import { descriptorSet } from '../gen/descriptor-set';
import { SendReceiptRequest } from '../gen/proto/receipts/v1/receipts';
import { loadPolicies, Metadata, type PolicyRegistry } from '../idempotency/index';
import { assertKeyIsKept } from '../outbox/assert-key-is-kept';
import { type Deliver, GIVE_UP_AFTER_MS } from '../outbox/relay-options';
import { RECEIPT_REQUESTED } from './receipt-event';
import type { ReceiptsClient } from './receipts-client';

/** What receipts are delivered by. */
export interface ReceiptDeliveryOptions {
  /** That of the relay, milliseconds. Default: the relay's own, 23 h. */
  readonly giveUpAfterMs?: number;
  /** What the receipts service promises. Default: by the protos of this package. */
  readonly policies?: Pick<PolicyRegistry, 'get'>;
}

/**
 * Delivers events that ask for a receipt, and rejects all others: a relay of an outbox that holds those too, as the one of
 * the payments service does, has `deliver: createRefundDelivery({ prisma, authorizer }, createReceiptDelivery(receipts))`.
 * The key of the call is the id of the event, so that the mail goes out once however often the event is delivered.
 *
 * @param client of ReceiptsService; its `timeoutMs` is at least the time of a delivery
 * @throws Error where events are sent for as long as the receipts service may forget their ids
 */
export function createReceiptDelivery(
  client: Pick<ReceiptsClient, 'sendReceipt'>,
  { giveUpAfterMs = GIVE_UP_AFTER_MS, policies = loadPolicies(descriptorSet) }: ReceiptDeliveryOptions = {},
): Deliver {
  // The type of these events is what is to be called.
  assertKeyIsKept({ path: `/${RECEIPT_REQUESTED}`, sentForMs: giveUpAfterMs }, policies);
  return async ({ id, type, payload, headers }, { signal, timeoutMs }) => {
    // It stays in the outbox, for a relay that is newer than this one, and for whoever looks.
    if (type !== RECEIPT_REQUESTED) throw new Error(`no consumer is known for events of the type ${type}`);
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    await client.sendReceipt(SendReceiptRequest.decode(payload), { requestId: id, metadata, signal, timeoutMs });
  };
}
