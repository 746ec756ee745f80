import type { NewEvent } from '../outbox/event';
import type { EventTerms } from '../outbox/relay-options';
import { REFUND_SENT_AGAIN_WITHIN_MS } from './carry-out-refund';

/** The type of events that ask for a reserved refund to be carried out. */
export const REFUND_RESERVED = 'payments.v1/RefundReserved';

/**
 * The event that has the card network asked for a refund. It names the refund and holds nothing else: what is sent, and
 * under which key, stands in its row. An aggregate of its own: it waits behind no receipt of its payment.
 */
export function refundReserved({ refundId }: { readonly refundId: string }): NewEvent {
  return { aggregateType: 'refund', aggregateId: refundId, type: REFUND_RESERVED, payload: {} };
}

/** More than there can be before it is too old: one every few seconds. */
const MAX_REFUND_ATTEMPTS = 1_000_000;

/**
 * The terms of these events: money is owed for as long as it takes. They are sent for as long as the network surely knows
 * the key of the refund, however often that fails; other events go by the terms of the relay.
 */
export function refundTermsOf(type: string): EventTerms {
  if (type !== REFUND_RESERVED) return {};
  return { giveUpAfterMs: REFUND_SENT_AGAIN_WITHIN_MS, maxAttempts: MAX_REFUND_ATTEMPTS };
}
