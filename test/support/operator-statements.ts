import {
  EXPIRE_IF_COMPLETED,
  FREE_IF_PARKED,
  REFUSE_IF_UNFINISHED,
  TAKE_CLAIM_AWAY,
} from '../../src/idempotency/store/sql/operator';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import type { Statement } from './scheduler-statements';
import { idOf } from './store';

const NEW_TOKEN = '00000000-0000-4000-8000-00000000000c';
const BY = 'operator ada';

const place = (request: ClaimRequest): readonly [string, string] => [request.key.bucket, idOf(request)];

/** Frees a parked request. */
export function freeParked(request: ClaimRequest, token: string): Statement {
  return { text: FREE_IF_PARKED, values: [...place(request), token, NEW_TOKEN, BY, 1] };
}

/** Takes a claim away whose lease is over. */
export function takeClaimAway(request: ClaimRequest, token: string): Statement {
  return { text: TAKE_CLAIM_AWAY, values: [...place(request), token, NEW_TOKEN, BY, 1, false] };
}

/** The same, also while the lease runs. */
export function endRunningLease(request: ClaimRequest, token: string): Statement {
  return { text: TAKE_CLAIM_AWAY, values: [...place(request), token, NEW_TOKEN, BY, 1, true] };
}

/** Makes a tombstone. */
export function expire(request: ClaimRequest, token: string): Statement {
  return { text: EXPIRE_IF_COMPLETED, values: [...place(request), token, BY] };
}

/** Records a refusal. */
export function refuse(request: ClaimRequest, token: string): Statement {
  return { text: REFUSE_IF_UNFINISHED, values: [...place(request), token, NEW_TOKEN, 9, 'given up', null, BY] };
}
