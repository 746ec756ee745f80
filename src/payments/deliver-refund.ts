import { descriptorSet } from '../gen/descriptor-set';
import { loadPolicies, type PolicyRegistry } from '../idempotency/index';
import { assertKeyIsKept } from '../outbox/assert-key-is-kept';
import type { Deliver } from '../outbox/relay-options';
import { carryOutRefund, networkKeyOf, REFUND_SENT_AGAIN_WITHIN_MS, type RefundMeans } from './carry-out-refund';
import { REFUND_RESERVED } from './refund-event';

/** The method of the card network that gives back, as on the wire. */
const NETWORK_REFUND = '/cardnetwork.v1.CardNetworkService/Refund';

/**
 * Carries out the refunds that events ask for, and leaves all other events to `others`. The card network is asked under
 * the key of the refund and not of the event, so that one that is sent again under a new id gives back nothing more; nor is
 * it asked once it may have forgotten that key.
 *
 * @param policies what the card network promises. Default: by the protos of this package
 * @throws Error where refunds are sent for as long as the network may forget their keys
 */
export function createRefundDelivery(
  means: RefundMeans,
  others: Deliver,
  policies: Pick<PolicyRegistry, 'get'> = loadPolicies(descriptorSet),
): Deliver {
  assertKeyIsKept({ path: NETWORK_REFUND, sentForMs: REFUND_SENT_AGAIN_WITHIN_MS }, policies);
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
