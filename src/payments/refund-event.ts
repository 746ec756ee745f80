import type { NewEvent } from '../outbox/event';

/** The type of events that ask for a reserved refund to be carried out. */
export const REFUND_RESERVED = 'payments.v1/RefundReserved';

/**
 * The event that has the card network asked for a refund. It names the refund and holds nothing else: what is sent, and
 * under which key, stands in its row. An aggregate of its own: it waits behind no receipt of its payment.
 */
export function refundReserved({ refundId }: { readonly refundId: string }): NewEvent {
  return { aggregateType: 'refund', aggregateId: refundId, type: REFUND_RESERVED, payload: {} };
}
