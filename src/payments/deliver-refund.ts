import type { Deliver } from '../outbox/relay-options';
import { carryOutRefund, networkKeyOf, REFUND_SENT_AGAIN_WITHIN_MS, type RefundMeans } from './carry-out-refund';
import { REFUND_RESERVED } from './refund-event';

/**
 * Carries out the refunds that events ask for, and leaves all other events to `others`. The card network is asked under
 * the key of the refund and not of the event, so that one that is sent again under a new id gives back nothing more; nor is
 * it asked once it may have forgotten that key.
 */
export function createRefundDelivery(means: RefundMeans, others: Deliver): Deliver {
  return async (event, context) => {
    if (event.type !== REFUND_RESERVED) return others(event, context);
    const refund = await means.prisma.refund.findUnique({ where: { refundId: event.aggregateId } });
    if (refund === null) throw new Error('the refund that the event tells of is gone: its payment is for a person');
    if (refund.state === 'done') return;
    // A new id makes the event young again, not the refund.
    if (Date.now() - refund.createdAt.getTime() > REFUND_SENT_AGAIN_WITHIN_MS) {
      throw new Error('the card network may have forgotten the key of the refund: look there, then note it as done');
    }
    const { signal, timeoutMs } = context;
    const deadline = new Date(Date.now() + timeoutMs);
    await carryOutRefund(means, refund, { requestId: networkKeyOf(refund), deadline, signal });
  };
}
