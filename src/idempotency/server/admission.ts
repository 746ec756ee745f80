import type { Metadata } from '@grpc/grpc-js';
import type { AdmissionOutcome } from '../events';
import type { Refusal } from '../errors';
import { UnreadableRequestError } from '../canonical-form';
import { fingerprint } from '../fingerprint';
import { type KeyReading, parseKey } from '../key';
import type { MethodPolicy } from '../policy';
import type { ClaimOutcome, ClaimRequest, HeldClaim, IdempotencyStore, NotKeptOutcome } from '../store/store';
import type { LeaseKeeper } from './lease-keeper';
import type { RegeneratedKeys } from './regenerated-keys';
import * as refusals from './refusals';
import { recordOf } from './replay';
import type { RecordSeen, Reply } from './reply';
import { isUnsafeResend } from './unsafe-resend';
import { retryHintMs, type UsualDurations } from './usual-duration';
import type { WaitingRoom } from './waiting-room';

/** What is known of a call when its request has arrived. */
export interface IncomingCall {
  readonly policy: MethodPolicy;
  readonly metadata: Metadata;
  /** The account of the caller. */
  readonly scope: string;
  /** The request as it came over the wire. */
  readonly request: Buffer;
  /** When the caller stops waiting, epoch milliseconds; Infinity when never. */
  readonly deadlineMs: number;
  /** Fires when the caller has stopped waiting. */
  readonly cancelled: AbortSignal;
}

/** What admission works with. */
export interface AdmissionOptions<Tx> {
  readonly store: IdempotencyStore<Tx>;
  /** Metadata name of the key. */
  readonly requestIdName: string;
  readonly leases: Pick<LeaseKeeper, 'count' | 'claiming'>;
  /** Most attempts of this process at once. */
  readonly mostAttempts: number;
  readonly waiting: WaitingRoom;
  readonly usual: UsualDurations;
  readonly regenerated: RegeneratedKeys;
}

/** What is done with a call. */
export type Admission =
  /** The handler runs as the owner of a claim. */
  | {
      readonly kind: 'run';
      readonly outcome: 'claimed';
      readonly request: ClaimRequest;
      readonly claim: HeldClaim;
      /** When it was asked for, by `performance.now()`. */
      readonly askedAtMs: number;
    }
  /** The handler runs without a claim; `observed` where only the policy's leniency lets it. */
  | { readonly kind: 'run_unclaimed'; readonly outcome: AdmissionOutcome; readonly observed?: true }
  | { readonly kind: 'replay'; readonly outcome: 'replayed'; readonly recordedCode: number; readonly reply: Reply }
  /** The answer was not kept, and the handler makes it anew. */
  | {
      readonly kind: 'rebuild';
      readonly outcome: 'replayed';
      readonly recordedCode: number;
      readonly found: NotKeptOutcome;
    }
  | { readonly kind: 'refuse'; readonly outcome: AdmissionOutcome; readonly reply: Reply };

/** An admission, with the key where one could be read, and what a claim reported on the way. */
export interface Admitted {
  readonly admission: Admission;
  readonly requestId: string | undefined;
  /** How old a dated key is by its date and the clock of this process; undefined for others. */
  readonly keyAgeMs?: number | undefined;
  readonly claimed?: { readonly durationMs: number; readonly outcome: ClaimOutcome };
  /** The content came with several new keys within seconds. */
  readonly isSuspect?: boolean;
}

/** Decides what is done with a call of a method that takes keys: reads the key, and claims it (design 4.1, 4.2, 4.6). */
export async function admit<Tx>(options: AdmissionOptions<Tx>, call: IncomingCall): Promise<Admitted> {
  const { policy, metadata, scope } = call;
  const reading = parseKey(metadata.get(options.requestIdName), policy.keyFormat);
  if (reading.kind !== 'key') {
    return { admission: admitKeyless(reading, options.requestIdName, call), requestId: undefined };
  }
  const { key } = reading;
  const keyAgeMs = key.dated && Math.max(0, Date.now() - key.dated.atMs);
  if (isFull(options)) {
    return { admission: refuse('store_unavailable', refusals.tooManyAttempts()), requestId: key.text, keyAgeMs };
  }
  const content = contentOf(call);
  if (content === undefined) {
    const reply: Reply = { kind: 'status', error: refusals.unreadable() };
    return { admission: { kind: 'refuse', outcome: 'malformed_key', reply }, requestId: key.text, keyAgeMs };
  }
  const request: ClaimRequest = {
    ...{ policy, scope, key, fingerprint: content },
    message: policy.resume ? call.request : undefined,
  };
  const { outcome, askedAtMs, durationMs } = await claimOrWait(options, request, call);
  const admission = decide(options, outcome, request, askedAtMs);
  const isSuspect = outcome.kind === 'granted' && !outcome.takeover && options.regenerated.claimed(request);
  return { admission, requestId: key.text, keyAgeMs, claimed: { durationMs, outcome }, isSuspect };
}

/** The fingerprint of the request; undefined where it can't be compared with another one, so that nothing is claimed. */
function contentOf({ policy, request }: IncomingCall): Buffer | undefined {
  try {
    return fingerprint(policy.request, request);
  } catch (error) {
    if (error instanceof UnreadableRequestError) return undefined;
    throw error;
  }
}

function isFull<Tx>({ leases, mostAttempts }: AdmissionOptions<Tx>): boolean {
  return leases.count() >= mostAttempts;
}

/** How long before its deadline a waiting call is answered, so that its caller still hears when to come back. */
const ANSWER_BEFORE_DEADLINE_MS = 100;

/** How long a call that met a row in somebody's hand, its lease over, lets it be; milliseconds, and as much again by chance. */
const LET_BE_MS = 250;

/** Claims, and where another attempt runs, waits for its end as long as the policy and the caller allow (design 4.9). */
async function claimOrWait<Tx>(
  options: AdmissionOptions<Tx>,
  request: ClaimRequest,
  { policy, deadlineMs, cancelled }: IncomingCall,
): Promise<{ readonly outcome: ClaimOutcome; readonly askedAtMs: number; readonly durationMs: number }> {
  const { store, waiting, leases } = options;
  const waitUntilMs =
    performance.now() + Math.min(policy.maxWaitMs, deadlineMs - Date.now() - ANSWER_BEFORE_DEADLINE_MS);
  for (;;) {
    const askedAtMs = performance.now();
    const outcome = await leases.claiming(() => store.claim(request));
    const claimed = { outcome, askedAtMs, durationMs: performance.now() - askedAtMs };
    if (outcome.kind !== 'in_progress' || policy.maxWaitMs === 0) return claimed;
    // A look at the database would say that nobody runs, and all who wait would claim again and again.
    const unseenMs = outcome.leaseLeftMs > 0 ? 0 : LET_BE_MS * (1 + Math.random());
    const end = await waiting.wait(store.placeOf(request), waitUntilMs - performance.now(), cancelled, unseenMs);
    if (end === 'given_up' || isFull(options)) return claimed;
  }
}

function admitKeyless(
  reading: Exclude<KeyReading, { kind: 'key' }>,
  name: string,
  { policy, metadata }: IncomingCall,
): Admission {
  const resent = isUnsafeResend(policy, metadata)
    ? refuse('keyless_retry', refusals.keylessRetry(name, policy.path))
    : undefined;
  switch (reading.kind) {
    case 'malformed':
      // Let through, a key that is none protects as little as no key.
      if (policy.enforcement === 'OBSERVE' && resent !== undefined) return resent;
      return relaxable(policy, 'malformed_key', refusals.malformedKey(name, reading.description));
    case 'missing':
      if (resent !== undefined) return resent;
      // An empty key, or its binary twin, is somebody's attempt to send one.
      if (policy.key === 'REQUIRED' || metadata.get(name).length + metadata.get(`${name}-bin`).length > 0) {
        return relaxable(policy, 'missing_key', refusals.missingKey(name, policy.path));
      }
      return { kind: 'run_unclaimed', outcome: 'unprotected' };
  }
}

/** OBSERVE counts a missing or malformed key and lets the call through; it relaxes nothing else (design 4.1). */
function relaxable({ enforcement }: MethodPolicy, outcome: AdmissionOutcome, refusal: Refusal): Admission {
  if (enforcement === 'OBSERVE') return { kind: 'run_unclaimed', outcome, observed: true };
  return refuse(outcome, refusal);
}

function refuse(outcome: AdmissionOutcome, refusal: Refusal, record?: RecordSeen): Admission {
  return { kind: 'refuse', outcome, reply: { kind: 'refuse', refusal, record } };
}

function decide<Tx>(
  { usual }: AdmissionOptions<Tx>,
  claim: ClaimOutcome,
  request: ClaimRequest,
  askedAtMs: number,
): Admission {
  switch (claim.kind) {
    case 'granted':
      return { kind: 'run', outcome: 'claimed', request, claim: claim.claim, askedAtMs };
    case 'completed':
      return {
        ...{ kind: 'replay', outcome: 'replayed', recordedCode: claim.answer.code },
        reply: {
          ...{ kind: 'answer', answer: claim.answer, replayed: true, expiresAt: claim.expiresAt },
          record: recordOf(claim),
        },
      };
    case 'not_kept':
      return { kind: 'rebuild', outcome: 'replayed', recordedCode: claim.code, found: claim };
    case 'in_progress': {
      const hintMs = retryHintMs(claim.ageMs, claim.leaseLeftMs, usual.of(request.policy.path));
      // Where somebody has the row in hand, it may just have been completed.
      const record: RecordSeen | undefined =
        claim.leaseLeftMs > 0 ? { state: 'claimed', resource: claim.resource } : undefined;
      return refuse('in_progress', refusals.inProgress(hintMs, claim.resource), record);
    }
    case 'mismatch':
      return refuse('mismatch', refusals.mismatch());
    case 'from_future':
      return refuse('future_key', refusals.fromFuture());
    case 'expired':
      return refuse('expired_key', refusals.expired(), claim.tombstone && { state: 'expired', ...claim.tombstone });
    case 'parked':
      return refuse('parked', refusals.parked(), { state: 'parked', resource: claim.resource });
    case 'unavailable':
      return refuse('store_unavailable', refusals.storeUnavailable());
  }
}
