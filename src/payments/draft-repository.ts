import type { Prisma } from '../gen/prisma/client';
import type { PaymentDraftModel } from '../gen/prisma/models/PaymentDraft';

/** A payment whose card network is being asked, as it is stored. */
export type PaymentDraftRow = PaymentDraftModel;

/** What a draft is made of. */
export type NewDraft = Omit<PaymentDraftRow, 'createdAt' | 'metadata'> & {
  readonly metadata: Readonly<Record<string, string>>;
};

/**
 * Writes a draft; false where its order has one already. It waits for a transaction that writes or removes another draft
 * of the order: whether the order was paid is to be read after this.
 */
export async function insertDraftIfFirst(
  tx: Prisma.TransactionClient,
  { metadata, ...draft }: NewDraft,
): Promise<boolean> {
  const data = [{ ...draft, metadata: { ...metadata } }];
  const { count } = await tx.paymentDraft.createMany({ data, skipDuplicates: true });
  return count > 0;
}

/** Removes a draft; whether it was there. */
export async function removeDraft(tx: Prisma.TransactionClient, paymentId: string): Promise<boolean> {
  const { count } = await tx.paymentDraft.deleteMany({ where: { paymentId } });
  return count > 0;
}
