import { parseKey } from './key';
import type { MethodPolicy } from './policy';
import type { IdempotencyStore, RequestStatus } from './store/store';

/** A request as it was kept beside what it made: whose it was, and its key as a text. */
export interface KeptRequest {
  readonly scope: string;
  readonly requestId: string;
}

/**
 * Says where a request stands of which only the key was kept, for whoever repairs something that a running attempt may
 * still finish (design part 6). Never the recorded answer.
 *
 * @param policy of the method; it must be among those that the store was opened with
 * @returns undefined for a text that is no key of the method: no attempt can run under it
 */
export async function readRequestStatus<Tx>(
  store: Pick<IdempotencyStore<Tx>, 'lookUpStatus'>,
  policy: MethodPolicy,
  { scope, requestId }: KeptRequest,
): Promise<RequestStatus | undefined> {
  const reading = parseKey([requestId], policy.keyFormat);
  return reading.kind === 'key' ? store.lookUpStatus({ policy, scope, key: reading.key }) : undefined;
}
