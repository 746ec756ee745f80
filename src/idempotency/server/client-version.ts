import type { Metadata } from '@grpc/grpc-js';
import { USER_AGENT } from '../wire/metadata';

/** Most versions that are told apart: each becomes a series of metrics (case M1). */
export const MOST_CLIENT_VERSIONS = 100;

/** Reads which of the known clients a call is from; `other` where it is none of them. */
export type ClientVersions = (metadata: Metadata) => string;

/**
 * Makes what tells clients apart by the first word of their `user-agent`, such as `shop/1.4.2`, which a grpc-js client sets
 * with the channel option `grpc.primary_user_agent`.
 *
 * @throws RangeError where more than 100 versions are given, or one that is no single word
 */
export function createClientVersions(known: readonly string[]): ClientVersions {
  if (known.length > MOST_CLIENT_VERSIONS) {
    throw new RangeError(`clientVersions: expected at most ${MOST_CLIENT_VERSIONS}, got ${known.length}`);
  }
  const unfit = known.find((version) => !isClientVersion(version));
  if (unfit !== undefined) throw new RangeError(`clientVersions: expected words such as shop/1.4.2, got "${unfit}"`);
  const versions = new Set(known);
  return (metadata) => {
    const [version = ''] = String(metadata.get(USER_AGENT)[0] ?? '').split(' ', 1);
    return versions.has(version) ? version : 'other';
  };
}

/** Whether a text can be the first word of a `user-agent`. */
export function isClientVersion(text: string): boolean {
  return /^[\x21-\x2b\x2d-\x7e]{1,64}$/.test(text);
}
