import type { MetadataValue } from '@grpc/grpc-js';
import { parseKey } from '../key';
import type { KeyFormat, MethodPolicy } from '../policy';

/** What the key of a call is worth. */
export type CallKey =
  | {
      readonly kind: 'key';
      /** The key itself. */
      readonly text: string;
      /** The time inside a dated key, milliseconds since 1970; undefined for every other. */
      readonly atMs: number | undefined;
    }
  | { readonly kind: 'missing' }
  | { readonly kind: 'malformed'; readonly description: string }
  /** The method's policy ignores keys, so that one protects nothing. */
  | { readonly kind: 'ignored' };

/**
 * Reads the key of a call as the server will (design 4.2). A key that the transport drops or that the server runs
 * unclaimed (policy OBSERVE) protects nothing; both are malformed.
 *
 * @param values what the call's metadata holds under the key's name
 */
export function readCallKey(policy: MethodPolicy | undefined, values: readonly MetadataValue[]): CallKey {
  if (policy?.key === 'IGNORED') return { kind: 'ignored' };
  const reading = parseKey(values, keyFormatOf(policy));
  if (reading.kind !== 'key') return reading;
  return { kind: 'key', text: reading.key.text, atMs: reading.key.dated?.atMs };
}

/** The key format of a method; of one that the registry does not know, the widest. */
export function keyFormatOf(policy: MethodPolicy | undefined): KeyFormat {
  return policy?.keyFormat ?? 'OPAQUE';
}
