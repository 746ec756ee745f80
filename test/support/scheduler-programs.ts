import { randomUUID } from 'node:crypto';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import type { Program } from './scheduler';
import * as statements from './scheduler-statements';
import type { Statement } from './scheduler-statements';

/** How often a call starts over. */
const ROUNDS = 5;

/** A plain statement. */
function sql(text: string, ...values: readonly unknown[]): Statement {
  return { text, values };
}

/** What a look-up tells, as far as these programs care. */
interface Found {
  readonly state: string | null;
  readonly ownerToken: string;
  readonly leaseLeftMs: number;
  readonly response: Buffer | null;
}

/** The answer of the attempt with a token. */
export function answerBy(token: string): string {
  return `answer by ${token}`;
}

/** Whether others may come between the statements of a completion before its fence, or only behind it. */
export type Grain = 'fine' | 'coarse';

/** Effects, fence and COMMIT, as `complete` does it. Ends with the answer, or with `fenced` or `rolled back`. */
export function* completing(request: ClaimRequest, token: string, begin = 'BEGIN', grain: Grain = 'fine'): Program {
  const answer = answerBy(token);
  const alone = grain === 'coarse' ? { alone: true as const } : {};
  try {
    yield { ...sql(begin), ...alone };
    yield { ...sql('INSERT INTO effect VALUES ($1, $2)', request.key.text, answer), ...alone };
    const fence = yield statements.complete(request, token, answer);
    yield sql(fence.rowCount === 1 ? 'COMMIT' : 'ROLLBACK');
    return fence.rowCount === 1 ? answer : 'fenced';
  } catch {
    yield sql('ROLLBACK');
    return 'rolled back';
  }
}

/** A claim that takes over what has been seen, and completes. */
export function* takingOver(request: ClaimRequest, tokenSeen: string, grain: Grain = 'fine'): Program {
  const token = randomUUID();
  const taken = yield statements.takeOver(request, tokenSeen, token);
  if (taken.rowCount === 1) return yield* completing(request, token, 'BEGIN', grain);
  return yield* looking(request);
}

/** A whole call: claims, takes over where it may, completes, or is told what there is. Starts over where that has gone. */
export function* calling(request: ClaimRequest, grain: Grain = 'fine'): Program {
  const token = randomUUID();
  for (let round = 1; ; round += 1) {
    const inserted = yield statements.insertClaim(request, token);
    if (inserted.rowCount === 1) return yield* completing(request, token, 'BEGIN', grain);
    const found = foundBy((yield statements.lookUp(request)).rows);
    if (found.state === null && round < ROUNDS) continue;
    if (found.state !== 'claimed' || found.leaseLeftMs > 0 || round === ROUNDS) return tell(found);
    const taken = yield statements.takeOver(request, found.ownerToken, token);
    if (taken.rowCount === 1) return yield* completing(request, token, 'BEGIN', grain);
  }
}

/** Reads what there is. */
export function* looking(request: ClaimRequest): Program {
  return tell(foundBy((yield statements.lookUp(request)).rows));
}

/** Finds out what became of a commit, as `settle` does it. */
export function* settling(request: ClaimRequest, token: string): Program {
  const taken = yield statements.takeTokenAway(request, token, randomUUID());
  if (taken.rowCount === 1) return 'never_committed';
  const found = foundBy((yield statements.lookUp(request)).rows);
  if (found.state !== 'completed' || found.ownerToken !== token) return 'lost';
  const confirmed = yield statements.confirm(request, token);
  return confirmed.rowCount === 1 ? 'committed' : 'lost';
}

/** One statement of an owner; ends with the number of rows. */
export function* doing(statement: Statement): Program {
  return String((yield statement).rowCount);
}

function foundBy(rows: readonly unknown[]): Found {
  return rows[0] as Found;
}

function tell({ state, response }: Found): string {
  return state === 'completed' ? (response?.toString() ?? '') : (state ?? 'absent');
}
