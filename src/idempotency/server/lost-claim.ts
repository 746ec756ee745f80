import type { ClaimRequest, IdempotencyStore } from '../store/store';
import * as refusals from './refusals';
import { replay } from './replay';
import type { Reply } from './reply';

/**
 * What the caller of an attempt is told whose claim went to another one: what that has recorded, if it has. Never rejects.
 *
 * @param rebuild makes an answer anew that was not kept; undefined where the method doesn't
 * @param onFault told what broke, and why
 */
export async function lostClaimReply<Tx>(
  store: Pick<IdempotencyStore<Tx>, 'lookUp'>,
  request: ClaimRequest,
  rebuild: ((resource: string) => Promise<Buffer>) | undefined,
  onFault: (what: string, error: unknown) => void,
): Promise<Reply> {
  try {
    const found = await store.lookUp(request);
    switch (found.kind) {
      case 'completed':
      case 'not_kept': {
        const reply = await replay(found, rebuild, onFault);
        return reply.kind === 'answer' ? { ...reply, reason: 'CLAIM_LOST' } : reply;
      }
      case 'mismatch':
        return { kind: 'refuse', refusal: refusals.mismatch() };
      case 'parked':
        return { kind: 'refuse', refusal: refusals.parked(), record: { state: 'parked', resource: found.resource } };
      case 'expired':
        return { kind: 'refuse', refusal: refusals.expired(), record: { state: 'expired', ...found.tombstone } };
      case 'claimed': {
        const record = { state: 'claimed', resource: found.resource } as const;
        return { kind: 'refuse', refusal: refusals.claimLost(), record };
      }
      case 'absent':
        return { kind: 'refuse', refusal: refusals.claimLost() };
    }
  } catch (error) {
    onFault('the winner of a lost claim could not be looked up', error);
    return { kind: 'refuse', refusal: refusals.storeUnavailable() };
  }
}
