import { newRequestId, type SqlClient } from '../idempotency/index';
import { encodeEvent, type NewEvent } from './event';
import { ADD_EVENT } from './sql';

/** Where a transaction leaves what it wants told to others. */
export interface Outbox {
  /**
   * Adds an event to a transaction: it is delivered if that commits, at least once, and in order within its aggregate.
   * Its aggregate stays locked until the transaction ends, so that a second one that adds to it waits. Who adds to several
   * aggregates adds in one order, or a deadlock makes one of two transactions run again.
   *
   * @returns the event's id, a UUIDv7: the key of every delivery
   * @throws TypeError that names every field at fault; nothing was written then
   */
  add(tx: SqlClient, event: NewEvent): Promise<string>;
}

/** How an outbox is made. */
export interface OutboxOptions {
  /** Told that an event was added; its transaction has yet to commit. For `wake` of a relay in this process. */
  readonly onAdded?: () => void;
}

/** Makes an outbox on the tables of this package. */
export function createOutbox({ onAdded }: OutboxOptions = {}): Outbox {
  return {
    add: async (tx, event) => {
      const { payload, headers } = encodeEvent(event);
      const id = newRequestId();
      const { aggregateType, aggregateId, type } = event;
      await tx.$queryRawUnsafe(ADD_EVENT, aggregateType, aggregateId, id, type, payload, JSON.stringify(headers));
      onAdded?.();
      return id;
    },
  };
}
