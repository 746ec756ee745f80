import type { Metadata } from '@grpc/grpc-js';
import type { MethodPolicy } from '../policy';
import { ENVOY_ATTEMPT, PREVIOUS_ATTEMPTS } from '../wire/metadata';

/**
 * True when a call that no key protects may run a second time: its method is of unknown level, and somebody on the way says
 * that this is not the first time it is sent (design 3.3, `KEYLESS_RETRY`).
 */
export function isUnsafeResend({ level }: Pick<MethodPolicy, 'level'>, metadata: Metadata): boolean {
  return level === 'UNKNOWN' && wasResent(metadata);
}

function wasResent(metadata: Metadata): boolean {
  return countOf(metadata, PREVIOUS_ATTEMPTS) > 0 || countOf(metadata, ENVOY_ATTEMPT) > 1;
}

/** The largest number of an entry, 0 where there is none; several hops arrive joined with commas. */
function countOf(metadata: Metadata, name: string): number {
  const texts = metadata.get(name).flatMap((value) => String(value).split(','));
  return Math.max(0, ...texts.map((text) => Number(text) || 0));
}
