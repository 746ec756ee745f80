import { status } from '@grpc/grpc-js';
import type { Prisma } from '../gen/prisma/client';
import { refuseSeen, type SeenRecord, StatusError } from '../idempotency/index';
import { PAYMENT_ABANDONED, PAYMENTS_DOMAIN } from '../payments/domain';
import { removeDraft } from '../payments/draft-repository';
import type { Books } from './comparison';
import { heldOf, isResumable } from './find-abandoned-drafts';
import type { FoundDraft, Outcome } from './findings';

/** Who a refused request is told of by, where somebody inspects it. */
const BY = { operator: 'reconcile' };

/**
 * Removes a draft that the network holds nothing for, so that its order can be paid, and, in the same transaction, gives its
 * request a final answer where it could still be resumed: a later attempt would find its stored steps, charge the card and
 * have no draft to make a payment of. Now it is told, by the record, that the payment was given up.
 *
 * The record is read first and named by its token: an attempt that takes it over meanwhile makes the transaction roll back,
 * and one that wakes later is fenced. What such a stale attempt has still sent to the network is a charge without a draft,
 * which the next run gives back. Where nothing is recorded of the request nobody resumes it: its key starts over or is
 * refused by its date.
 */
export async function repairAbandonedDraft(books: Books, draft: FoundDraft): Promise<Outcome> {
  const { prisma, network, recordOf, resumedWithinMs } = books;
  const { paymentId, orderId } = draft;
  const record = await recordOf(draft);
  const isOpen = record !== undefined && isUnfinished(record);
  if (isOpen && record.state === 'claimed' && isResumable(record, resumedWithinMs)) {
    return { kind: 'left', why: 'its request is under way again' };
  }
  if (record?.state === 'completed' && record.code === status.OK) {
    return { kind: 'left', why: 'its caller was told that it is paid, and the network holds nothing: for a person' };
  }
  if (heldOf(await network.inNameOf(paymentId)).length > 0) {
    return { kind: 'left', why: 'the network holds a charge in its name by now: run this again' };
  }
  try {
    return await prisma.$transaction<Outcome>(async (tx: Prisma.TransactionClient) => {
      if (!(await removeDraft(tx, paymentId))) return { kind: 'gone' };
      if (isOpen && !(await refuseSeen(tx, record, abandoned(), BY))) throw new Overtaken();
      const late = isOpen ? '; a late retry is told that it was given up' : '';
      return { kind: 'repaired', how: `removed the draft, so that the order ${orderId} can be paid${late}` };
    });
  } catch (error) {
    if (error instanceof Overtaken) return { kind: 'left', why: 'its request is under way again' };
    throw error;
  }
}

/** The request was taken over between the look and the change; thrown so that nothing of the change stays. */
class Overtaken extends Error {}

function isUnfinished({ state, keptAt }: SeenRecord): boolean {
  return keptAt === undefined && (state === 'claimed' || state === 'parked');
}

function abandoned(): StatusError {
  const text = 'the payment was given up before its card was charged, since nobody came back for it: use a new key';
  const info = { reason: PAYMENT_ABANDONED, domain: PAYMENTS_DOMAIN };
  return new StatusError(status.FAILED_PRECONDITION, text, [], info);
}
