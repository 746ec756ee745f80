import type { Metadata } from '@grpc/grpc-js';
import type { AdmissionOutcome } from '../events';
import type { Refusal } from '../errors';
import { fingerprint } from '../fingerprint';
import { type KeyReading, parseKey } from '../key';
import type { MethodPolicy } from '../policy';
import type { ClaimOutcome, ClaimRequest, HeldClaim, IdempotencyStore, RecordedAnswer } from '../store/store';
import { ENVOY_ATTEMPT, PREVIOUS_ATTEMPTS } from '../wire/metadata';
import * as refusals from './refusals';

/** What is known of a call when its request has arrived. */
export interface IncomingCall {
  readonly policy: MethodPolicy;
  readonly metadata: Metadata;
  /** The account of the caller. */
  readonly scope: string;
  /** The request as it came over the wire. */
  readonly request: Buffer;
}

/** What is done with a call. */
export type Admission =
  /** The handler runs as the owner of a claim. */
  | { readonly kind: 'run'; readonly outcome: 'claimed'; readonly request: ClaimRequest; readonly claim: HeldClaim }
  /** The handler runs without a claim. */
  | { readonly kind: 'run_unclaimed'; readonly outcome: 'unprotected' }
  | { readonly kind: 'replay'; readonly outcome: 'replayed'; readonly answer: RecordedAnswer; readonly expiresAt: Date }
  | { readonly kind: 'refuse'; readonly outcome: AdmissionOutcome; readonly refusal: Refusal };

/** An admission, with the key where one could be read, and what a claim reported on the way. */
export interface Admitted {
  readonly admission: Admission;
  readonly requestId: string | undefined;
  readonly claimed?: { readonly durationMs: number; readonly outcome: ClaimOutcome };
}

/**
 * Decides what is done with a call of a method that takes keys: reads the key, and claims it (design 4.1, 4.2, 4.6).
 *
 * @param requestIdName metadata name of the key
 */
export async function admit<Tx>(
  store: IdempotencyStore<Tx>,
  requestIdName: string,
  call: IncomingCall,
): Promise<Admitted> {
  const { policy, metadata, scope } = call;
  const reading = parseKey(metadata.get(requestIdName), policy.keyFormat);
  if (reading.kind !== 'key') {
    return { admission: admitKeyless(reading, requestIdName, call), requestId: undefined };
  }
  const { key } = reading;
  const request = { policy, scope, key, fingerprint: fingerprint(policy.request, call.request) };
  const startedAt = performance.now();
  const outcome = await store.claim(request);
  const durationMs = performance.now() - startedAt;
  return { admission: decide(outcome, request), requestId: key.text, claimed: { durationMs, outcome } };
}

function admitKeyless(
  reading: Exclude<KeyReading, { kind: 'key' }>,
  requestIdName: string,
  { policy, metadata }: IncomingCall,
): Admission {
  switch (reading.kind) {
    case 'malformed':
      return {
        kind: 'refuse',
        outcome: 'malformed_key',
        refusal: refusals.malformedKey(requestIdName, reading.description),
      };
    case 'missing':
      if (policy.level === 'UNKNOWN' && wasResent(metadata)) {
        return { kind: 'refuse', outcome: 'keyless_retry', refusal: refusals.keylessRetry(requestIdName, policy.path) };
      }
      // An empty key, or its binary twin, is somebody's attempt to send one.
      if (
        policy.key === 'REQUIRED' ||
        metadata.get(requestIdName).length + metadata.get(`${requestIdName}-bin`).length > 0
      ) {
        return { kind: 'refuse', outcome: 'missing_key', refusal: refusals.missingKey(requestIdName, policy.path) };
      }
      return { kind: 'run_unclaimed', outcome: 'unprotected' };
  }
}

/** The largest number of an entry, 0 where there is none; several hops arrive joined with commas. */
function countOf(metadata: Metadata, name: string): number {
  const texts = metadata.get(name).flatMap((value) => String(value).split(','));
  return Math.max(0, ...texts.map((text) => Number(text) || 0));
}

/** True when somebody on the way says that this is not the first time the call is sent. */
function wasResent(metadata: Metadata): boolean {
  return countOf(metadata, PREVIOUS_ATTEMPTS) > 0 || countOf(metadata, ENVOY_ATTEMPT) > 1;
}

function decide(claim: ClaimOutcome, request: ClaimRequest): Admission {
  switch (claim.kind) {
    case 'granted':
      return { kind: 'run', outcome: 'claimed', request, claim: claim.claim };
    case 'completed':
      return { kind: 'replay', outcome: 'replayed', answer: claim.answer, expiresAt: claim.expiresAt };
    case 'in_progress':
      return {
        kind: 'refuse',
        outcome: 'in_progress',
        refusal: refusals.inProgress(claim.leaseLeftMs, claim.resource),
      };
    case 'mismatch':
      return { kind: 'refuse', outcome: 'mismatch', refusal: refusals.mismatch() };
    case 'from_future':
      return { kind: 'refuse', outcome: 'future_key', refusal: refusals.fromFuture() };
    case 'expired':
      return { kind: 'refuse', outcome: 'expired_key', refusal: refusals.expired() };
    case 'parked':
      return { kind: 'refuse', outcome: 'parked', refusal: refusals.parked() };
    case 'unavailable':
      return { kind: 'refuse', outcome: 'store_unavailable', refusal: refusals.storeUnavailable() };
  }
}
