import { INSERT_CLAIM, INSERT_CLAIMS, TAKE_OVER_IF_EXPIRED } from '../../src/idempotency/store/sql/claim';
import { COMPLETE_IF_HELD } from '../../src/idempotency/store/sql/complete';
import {
  END_LEASES_IF_HELD,
  PUBLISH_IF_HELD,
  RELEASE_IF_HELD,
  RENEW_IF_HELD,
  SELECT_STILL_HELD,
} from '../../src/idempotency/store/sql/lease';
import { LOOK_UP, SELECT_STILL_RUNNING } from '../../src/idempotency/store/sql/look-up';
import { CONFIRM_COMPLETION, TAKE_TOKEN_AWAY_IF_HELD } from '../../src/idempotency/store/sql/settle';
import {
  PARK_IF_EXHAUSTED,
  RECORD_STEP_IF_HELD,
  RECORD_STEP_IN_TRANSACTION_IF_HELD,
} from '../../src/idempotency/store/sql/step';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { idOf } from './store';

/** A statement on the records with all its values, to be run on a connection that a test chooses. */
export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
  /** It concerns nobody else: the next statement of its program follows at once, with none of others between. */
  readonly alone?: true;
}

/** The first method that a store registers. */
const METHOD = 1;

const place = (request: ClaimRequest): readonly [string, string] => [request.key.bucket, idOf(request)];

const asRow = (request: ClaimRequest, token: string, leaseMs?: number) => {
  const [bucket, id] = place(request);
  return { bucket, id, token, leaseMs };
};

/** Inserts a claim under a token. */
export function insertClaim(request: ClaimRequest, token: string): Statement {
  const { policy, key, scope, fingerprint } = request;
  const [bucket, id] = place(request);
  const dates = [key.dated?.atMs ?? null, policy.maxKeyAgeMs, policy.leaseMs];
  return {
    text: INSERT_CLAIM,
    values: [bucket, id, ...dates, METHOD, token, fingerprint, scope, key.text, 'process-1', null],
  };
}

/** Inserts several claims in one statement, in this order unless the statement sorts them. */
export function insertClaims(claims: readonly (readonly [ClaimRequest, string])[]): Statement {
  const rows = claims.map(([request, token]) => ({
    ...asRow(request, token, request.policy.leaseMs),
    ...{ datedAtMs: request.key.dated?.atMs ?? null, maxKeyAgeMs: request.policy.maxKeyAgeMs, method: METHOD },
    ...{ fingerprint: request.fingerprint.toString('hex'), scope: request.scope, requestId: request.key.text },
    instance: 'process-1',
  }));
  return { text: INSERT_CLAIMS, values: [JSON.stringify(rows)] };
}

/** Takes a claim over whose owner was seen. */
export function takeOver(request: ClaimRequest, tokenSeen: string, newToken: string): Statement {
  const values = [...place(request), tokenSeen, newToken, request.policy.leaseMs, 'process-2'];
  return { text: TAKE_OVER_IF_EXPIRED, values };
}

/** Records an answer. */
export function complete(request: ClaimRequest, token: string, answer = 'done'): Statement {
  const values = [...place(request), token, '15000', 0, null, Buffer.from(answer), null, null, true];
  return { text: COMPLETE_IF_HELD, values };
}

/** Prolongs a lease by a minute. */
export function renew(request: ClaimRequest, token: string): Statement {
  return { text: RENEW_IF_HELD, values: [JSON.stringify([asRow(request, token, 60_000)])] };
}

/** Says whether a claim is still held. */
export function stillHeld(request: ClaimRequest, token: string): Statement {
  return { text: SELECT_STILL_HELD, values: [JSON.stringify([asRow(request, token)])] };
}

/** Says whether an attempt still runs. */
export function stillRunning(request: ClaimRequest): Statement {
  return { text: SELECT_STILL_RUNNING, values: [JSON.stringify([asRow(request, '')])] };
}

/** Ends a lease. */
export function endLease(request: ClaimRequest, token: string): Statement {
  return { text: END_LEASES_IF_HELD, values: [JSON.stringify([asRow(request, token)])] };
}

/** Gives a key back. */
export function release(request: ClaimRequest, token: string): Statement {
  return { text: RELEASE_IF_HELD, values: [...place(request), token] };
}

/** Publishes a resource. */
export function publish(request: ClaimRequest, token: string): Statement {
  return { text: PUBLISH_IF_HELD, values: [...place(request), token, 'payments/1'] };
}

/** Takes the token of an attempt away. */
export function takeTokenAway(request: ClaimRequest, token: string, newToken: string): Statement {
  return { text: TAKE_TOKEN_AWAY_IF_HELD, values: [...place(request), token, newToken, '1000'] };
}

/** Writes behind a completion. */
export function confirm(request: ClaimRequest, token: string): Statement {
  return { text: CONFIRM_COMPLETION, values: [...place(request), token] };
}

/** Reads the record, or what there is instead. */
export function lookUp(request: ClaimRequest): Statement {
  const { key, policy } = request;
  return { text: LOOK_UP, values: [...place(request), key.dated?.atMs ?? null, policy.maxKeyAgeMs] };
}

/** Records the first recovery point by itself. */
export function recordStep(request: ClaimRequest, token: string): Statement {
  return { text: RECORD_STEP_IF_HELD, values: [...place(request), token, 'draft', Buffer.of(1), null] };
}

/** Records a recovery point as the last statement of a transaction. */
export function recordStepInTransaction(request: ClaimRequest, token: string): Statement {
  const values = [...place(request), token, '15000', 'draft', Buffer.of(1), null];
  return { text: RECORD_STEP_IN_TRANSACTION_IF_HELD, values };
}

/** Parks a half-finished request that was tried so often. */
export function park(request: ClaimRequest, token: string, mostAttempts = 1): Statement {
  return { text: PARK_IF_EXHAUSTED, values: [...place(request), token, PARKED_BY, mostAttempts] };
}

const PARKED_BY = '00000000-0000-4000-8000-00000000000b';
