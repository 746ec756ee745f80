import { type MethodPolicy, POLICY_DEFAULTS } from '../policy';
import { type Deadline, deadlineIn, NEVER } from './call-deadline';
import type { CallKey } from './call-key';

/**
 * Until when a key may be sent again by the call that starts now (design 5, case I1).
 *
 * A dated key is first used until its date plus the method's `max_key_age`: a retry after that could not be the first to
 * arrive. Of an undated one, only the record tells a retry from a new call, and the record is kept for the method's
 * retention. `keyLifetimeMs`, from the same moments, shortens both, for a server that keeps keys for less than its proto
 * says. Without a usable key there is no such end: level or `no_request_id` decide.
 */
export function keyLifetime(
  key: CallKey,
  policy: Pick<MethodPolicy, 'maxKeyAgeMs' | 'retentionMs'> = POLICY_DEFAULTS,
  keyLifetimeMs: number | undefined,
): Deadline {
  if (key.kind !== 'key') return NEVER;
  const shortenedMs = keyLifetimeMs ?? Infinity;
  if (key.atMs === undefined) return deadlineIn(Math.min(policy.retentionMs, shortenedMs));
  return deadlineIn(key.atMs + Math.min(policy.maxKeyAgeMs, shortenedMs) - Date.now());
}
