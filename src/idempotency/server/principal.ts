import type { Metadata, ServerInterceptingCallInterface } from '@grpc/grpc-js';

/** What a caller can be identified by. */
export interface CallIdentity {
  /** As on the wire: `/package.Service/Method`. */
  readonly path: string;
  readonly metadata: Metadata;
  /** With a verified client certificate, where the connection has one. */
  readonly authContext: ReturnType<ServerInterceptingCallInterface['getAuthContext']>;
  /** Address of the other end; an address is no identity. */
  readonly peer: string;
}

/**
 * Names the caller: a **stable account**, never the name of a credential or a pod, since a changed scope is a new key.
 * Undefined for a caller that can't be identified, who is then refused (UNAUTHENTICATED). What a text column can't hold as
 * it is (half a surrogate pair, NUL) names nobody: such a call is answered INTERNAL. Asked once per call, when the call
 * starts, since the connection may be gone later.
 */
export type Principal = (call: CallIdentity) => string | undefined | Promise<string | undefined>;

/** What asking for the caller gave. */
export type Identification =
  | { readonly kind: 'identified'; readonly scope: string }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'failed'; readonly error: unknown };

/** Asks who calls. A promise only where `principal` gives one. Never throws or rejects. */
export function identify(
  principal: Principal,
  path: string,
  metadata: Metadata,
  call: ServerInterceptingCallInterface,
): Identification | Promise<Identification> {
  try {
    const scope = principal({ path, metadata, authContext: call.getAuthContext(), peer: call.getPeer() });
    if (typeof scope === 'string' || scope === undefined) return identified(scope);
    return Promise.resolve(scope).then(identified, failed);
  } catch (error) {
    return failed(error);
  }
}

function identified(scope: unknown): Identification {
  if (scope === undefined || scope === '') return { kind: 'unknown' };
  // Half a surrogate pair is another character once it is hashed or stored: two accounts would share their keys.
  if (typeof scope === 'string' && scope.isWellFormed() && !scope.includes('\0')) return { kind: 'identified', scope };
  return failed(new TypeError('principal gave no name of an account: expected well-formed text without NUL'));
}

function failed(error: unknown): Identification {
  return { kind: 'failed', error };
}
