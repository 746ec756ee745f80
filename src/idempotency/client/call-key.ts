import type { MetadataValue } from '@grpc/grpc-js';
import { type KeyTextReading, readKeyText } from '../key';
import type { KeyFormat, MethodPolicy } from '../policy';

/** What the key of a call is worth. */
export type CallKey =
  | KeyTextReading
  /** The method's policy ignores keys, so that one protects nothing. */
  | { readonly kind: 'ignored' };

/**
 * Reads the key of a call as the server will (design 4.2). A key that the transport drops or that the server runs
 * unclaimed (policy OBSERVE) protects nothing; both are malformed.
 *
 * @param values what the call's metadata holds under the key's name
 */
export function readCallKey(policy: MethodPolicy | undefined, values: readonly MetadataValue[]): CallKey {
  return policy?.key === 'IGNORED' ? IGNORED : readKeyText(values, keyFormatOf(policy));
}

const IGNORED: CallKey = { kind: 'ignored' };

/** The key format of a method; of one that the registry does not know, the widest. */
export function keyFormatOf(policy: MethodPolicy | undefined): KeyFormat {
  return policy?.keyFormat ?? 'OPAQUE';
}

/**
 * What is wrong with a key that a call must not be sent with; undefined where it may go, which it may without a key. The
 * transport drops a padded key without a word, and the call would run unprotected (case G1). A method whose key is only
 * observed is called as before.
 *
 * @param values what `key` was read from
 */
export function faultOfKey(
  policy: MethodPolicy | undefined,
  values: readonly MetadataValue[],
  key: CallKey,
): string | undefined {
  if (values.length === 0 || policy?.enforcement === 'OBSERVE') return undefined;
  switch (key.kind) {
    case 'missing':
      return 'expected a key, got an empty text';
    case 'malformed':
      return key.description;
    case 'key':
    case 'ignored':
      return undefined;
  }
}
