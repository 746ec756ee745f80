import { randomUUID } from 'node:crypto';
import type { SqlClient } from '../idempotency/index';
import type { DeliverableEvent } from './relay-options';
import {
  MARK_DELIVERED_IF_HELD,
  PARK_IF_HELD,
  POSTPONE_IF_HELD,
  RELEASE_IF_HELD,
  SELECT_HEADS,
  SWEEP_EMPTY,
  TAKE_DUE_AGGREGATES,
} from './sql';

/** An event in the hands of this relay, with all later ones of its aggregate behind it. */
export interface TakenEvent extends DeliverableEvent {
  /** Names the round that took it. */
  readonly token: string;
  /** Its place in the outbox. */
  readonly position: string;
  /** Deliveries that failed before. */
  readonly attempts: number;
  /** The time by the database clock when it was taken, epoch milliseconds. */
  readonly takenAtMs: number;
}

interface HeadRow extends Omit<DeliverableEvent, 'headers'> {
  readonly position: string;
  readonly headers: string;
  readonly attempts: number;
  readonly nowMs: number;
}

interface AggregateRow {
  readonly aggregateType: string;
  readonly aggregateId: string;
}

/** Takes the oldest event of each of up to `size` aggregates that are due, for `leaseMs`. */
export async function takeHeads(client: SqlClient, size: number, leaseMs: number): Promise<readonly TakenEvent[]> {
  const token = randomUUID();
  const taken = await client.$queryRawUnsafe<AggregateRow[]>(TAKE_DUE_AGGREGATES, token, size, leaseMs);
  if (taken.length === 0) return [];
  const heads = await client.$queryRawUnsafe<HeadRow[]>(SELECT_HEADS, ...asColumns(taken));
  return heads.map(({ headers, nowMs, ...event }) => {
    return { ...event, token, headers: JSON.parse(headers) as Record<string, string>, takenAtMs: nowMs };
  });
}

/** Notes that an event was delivered; false where it is no longer ours. */
export function markDeliveredIfHeld(client: SqlClient, event: TakenEvent): Promise<boolean> {
  return changes(client, MARK_DELIVERED_IF_HELD, [...heldBy(event), event.position, event.id]);
}

/** Notes a failure and comes again after `delayMs`; false where the event is no longer ours. */
export function postponeIfHeld(client: SqlClient, event: TakenEvent, delayMs: number, error: string): Promise<boolean> {
  return changes(client, POSTPONE_IF_HELD, [...heldBy(event), delayMs, event.id, error]);
}

/** Puts an event aside for a person; false where it is no longer ours. `tried`: whether it was sent just now. */
export function parkIfHeld(client: SqlClient, event: TakenEvent, tried: boolean, error: string): Promise<boolean> {
  return changes(client, PARK_IF_HELD, [...heldBy(event), tried ? 1 : 0, event.id, error]);
}

/** Gives events back that were not sent. */
export async function releaseIfHeld(client: SqlClient, events: readonly TakenEvent[]): Promise<void> {
  const [first] = events;
  if (first !== undefined) await changes(client, RELEASE_IF_HELD, [first.token, ...asColumns(events)]);
}

/** Removes up to `size` rows of aggregates without undelivered events; how many there were. */
export async function sweepEmpty(client: SqlClient, size: number): Promise<number> {
  const [row] = await client.$queryRawUnsafe<{ count: number }[]>(SWEEP_EMPTY, size);
  return row?.count ?? 0;
}

function heldBy({ aggregateType, aggregateId, token }: TakenEvent): readonly string[] {
  return [aggregateType, aggregateId, token];
}

function asColumns(aggregates: readonly AggregateRow[]): readonly [string[], string[]] {
  return [aggregates.map(({ aggregateType }) => aggregateType), aggregates.map(({ aggregateId }) => aggregateId)];
}

async function changes(client: SqlClient, statement: string, values: readonly unknown[]): Promise<boolean> {
  return (await client.$queryRawUnsafe<unknown[]>(statement, ...values)).length > 0;
}
