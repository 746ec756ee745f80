import type { PrismaClient } from '../gen/prisma/client';
import { effectKeyOf } from '../idempotency/index';
import type { Authorizer, NetworkCallContext } from './authorizer';
import { finishRefund, type RefundRow } from './refund-repository';

/** RefundPayment as on the wire. */
export const REFUND_PAYMENT = '/payments.v1.PaymentsService/RefundPayment';

/** Name of the effect of RefundPayment by which the card network is asked. Part of its key: never another. */
export const REFUND_EFFECT = 'refund';

/**
 * For how long after a refund was reserved it is sent again, milliseconds: less than the 8 days for which the network
 * keeps keys. Later it might take an old key for a new one.
 */
export const REFUND_SENT_AGAIN_WITHIN_MS = 7 * 24 * 3_600_000;

/** What carries refunds out that have no attempt of their own, or none any more. */
export interface RefundMeans {
  readonly prisma: PrismaClient;
  readonly authorizer: Pick<Authorizer, 'refund'>;
}

/**
 * The key under which the card network is asked for a refund: the one that RefundPayment derives from that of its
 * request. So whoever carries a refund out, and however often, it is one at the network.
 */
export function networkKeyOf({ scope, requestId }: Pick<RefundRow, 'scope' | 'requestId'>): string {
  return effectKeyOf({ scope, path: REFUND_PAYMENT, requestId }, REFUND_EFFECT);
}

/**
 * Asks the card network for a refund that is reserved, and notes that it was made. To repeat it changes nothing, also
 * while its own request goes on with it.
 *
 * @param call with the key of the refund, as `networkKeyOf` says
 * @throws StatusError UNAVAILABLE while it is not known whether the money was given back, and what the database said
 */
export async function carryOutRefund(
  { prisma, authorizer }: RefundMeans,
  { refundId, paymentId, amountMinor }: Pick<RefundRow, 'refundId' | 'paymentId' | 'amountMinor'>,
  call: NetworkCallContext,
): Promise<string> {
  const { authorizationId } = await prisma.payment.findUniqueOrThrow({ where: { paymentId } });
  const networkRefundId = await authorizer.refund({ authorizationId, amountMinor }, call);
  await finishRefund(prisma, refundId, networkRefundId);
  return networkRefundId;
}
