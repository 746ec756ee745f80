import { newRequestId, type SqlClient } from '../idempotency/index';
import { madeAtMs } from './delivery';
import { GIVE_UP_AFTER_MS, giveUpAfterMsOf, type TermsOf } from './relay-options';
import { REQUEUE_IF_PARKED, SELECT_EVENT, SELECT_PARKED, SELECT_UNDELIVERED } from './sql';

/** An event that waits, as a person looks at it. */
export interface UndeliveredEvent {
  readonly id: string;
  readonly aggregateType: string;
  readonly aggregateId: string;
  readonly type: string;
  readonly state: 'pending' | 'parked';
  readonly attempts: number;
  /** How the last delivery failed; null where none has. */
  readonly lastError: string | null;
  /** Since it was added, milliseconds by the database clock. */
  readonly ageMs: number;
}

/** What became of a wish to send a parked event again. */
export type RequeueOutcome =
  /** It is sent again under this id. */
  | { readonly kind: 'requeued'; readonly id: string }
  /** There is no such event, or it is not parked. */
  | { readonly kind: 'not_parked' }
  /** Its consumer would refuse the id as expired; only a new id helps, and the consumer takes that for a new message. */
  | { readonly kind: 'too_old' };

/** Up to `limit` undelivered events: the parked ones first, then the oldest. */
export function listUndelivered(client: SqlClient, limit: number): Promise<readonly UndeliveredEvent[]> {
  return client.$queryRawUnsafe<UndeliveredEvent[]>(SELECT_UNDELIVERED, limit);
}

/**
 * Sends a parked event again, with its attempts counted anew, and with it those that it holds back.
 *
 * @param eventId its id
 * @param options `newId`: under a new id. A delivery that had its effect, and whose confirmation was lost, has it twice
 *   then: to be asked for only after the consumer was looked at. `giveUpAfterMs` and `termsOf`: as for the relay; default 23 h for all
 */
export async function requeueEvent(
  client: SqlClient,
  eventId: string,
  {
    newId = false,
    giveUpAfterMs = GIVE_UP_AFTER_MS,
    termsOf = () => ({}),
  }: { readonly newId?: boolean; readonly giveUpAfterMs?: number; readonly termsOf?: TermsOf } = {},
): Promise<RequeueOutcome> {
  const [event] = await client.$queryRawUnsafe<{ state: string; type: string; nowMs: number }[]>(SELECT_EVENT, eventId);
  if (event?.state !== 'parked') return { kind: 'not_parked' };
  const limitMs = giveUpAfterMsOf({ giveUpAfterMs, termsOf }, event.type);
  if (!newId && event.nowMs - madeAtMs(eventId) > limitMs) return { kind: 'too_old' };
  const id = newId ? newRequestId() : eventId;
  const requeued = await client.$queryRawUnsafe<unknown[]>(REQUEUE_IF_PARKED, eventId, id);
  return requeued.length > 0 ? { kind: 'requeued', id } : { kind: 'not_parked' };
}

/** What became of the parked events. */
export interface RequeuedEvents {
  readonly requeued: number;
  /** Those that only a new id helps; they stay parked. */
  readonly tooOld: number;
}

const PAGE = 1_000;

/**
 * Sends every parked event again whose consumer still takes its id: after an outage that lasted too long.
 *
 * @param options `termsOf`: as for the relay
 */
export async function requeueAll(
  client: SqlClient,
  options: { readonly termsOf?: TermsOf } = {},
): Promise<RequeuedEvents> {
  const counts: Record<RequeueOutcome['kind'], number> = { requeued: 0, too_old: 0, not_parked: 0 };
  let position = '0';
  for (;;) {
    const page = await client.$queryRawUnsafe<{ id: string; position: string }[]>(SELECT_PARKED, position, PAGE);
    for (const event of page) {
      counts[(await requeueEvent(client, event.id, options)).kind] += 1;
      position = event.position;
    }
    if (page.length < PAGE) return { requeued: counts.requeued, tooOld: counts.too_old };
  }
}
