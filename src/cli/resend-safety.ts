import type { MethodPolicy } from '../idempotency/index';

/** Whether something that knows no keys (a channel, a mesh) may send a call of a method again. */
export type ResendSafety =
  /** By its level: a second run does no harm. */
  | { readonly kind: 'by_level' }
  /** By its key: the server runs no keyless call, and no key twice. */
  | { readonly kind: 'by_key' }
  | { readonly kind: 'unsafe'; readonly why: string; readonly remedy: string };

const REQUIRE_A_KEY = 'require a key: (idempotency.v1.policy) = {key: KEY_REQUIREMENT_REQUIRED}';
const NEVER_RETRY = 'switch the retries off for this method';

/** Decides by the policy alone (design 4.1): what a server enforces is safe whatever its callers do. */
export function resendSafety(policy: MethodPolicy): ResendSafety {
  if (policy.clientStreaming) {
    return { kind: 'unsafe', why: 'it takes a stream, which is not protected', remedy: NEVER_RETRY };
  }
  if (policy.level !== 'UNKNOWN') return { kind: 'by_level' };
  if (policy.serverStreaming) {
    return { kind: 'unsafe', why: 'it answers with a stream, which is not protected', remedy: NEVER_RETRY };
  }
  switch (policy.key) {
    case 'IGNORED':
      return { kind: 'unsafe', why: 'its level is unknown and no key protects it', remedy: REQUIRE_A_KEY };
    case 'OPTIONAL':
      return { kind: 'unsafe', why: 'its level is unknown and calls may come without a key', remedy: REQUIRE_A_KEY };
    case 'REQUIRED':
      return enforcedKey(policy);
  }
}

function enforcedKey({ enforcement, allowDetached }: MethodPolicy): ResendSafety {
  if (enforcement === 'OBSERVE') {
    const why = 'its key is only observed, so keyless calls run unprotected';
    return { kind: 'unsafe', why, remedy: 'enforce it: enforcement: ENFORCEMENT_ENFORCE' };
  }
  if (allowDetached) {
    const why = 'allow_detached lets it answer without a record, so that a retry runs again';
    return { kind: 'unsafe', why, remedy: NEVER_RETRY };
  }
  return { kind: 'by_key' };
}
