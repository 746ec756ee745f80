import { connect, type Database } from '../../src/database/connect';
import type { NewEvent } from '../../src/outbox/event';
import { createOutbox } from '../../src/outbox/outbox';
import { createRelay, type Relay } from '../../src/outbox/relay';
import type { RelayEvent } from '../../src/outbox/relay-events';
import type { DeliverableEvent, RelayOptions } from '../../src/outbox/relay-options';
import { createTestDatabase, type TestDatabase } from './postgres';

/** An outbox on a database of its own. */
export interface TestOutbox {
  readonly database: TestDatabase;
  readonly connections: Database;
  /** Adds an event in a transaction of its own; its id. */
  add(event?: Partial<NewEvent>): Promise<string>;
  /** A relay that tells what it delivers to `deliver`. Default: everything is confirmed. */
  relay(options?: Partial<RelayOptions>): TestRelay;
  close(): Promise<void>;
}

/** A relay, what it delivered and what it told. */
export interface TestRelay extends Relay {
  readonly delivered: readonly DeliverableEvent[];
  readonly told: readonly RelayEvent[];
}

/** An event with every field. */
export function eventOf(changes: Partial<NewEvent> = {}): NewEvent {
  return { aggregateType: 'payment', aggregateId: 'p-1', type: 'paid', payload: Buffer.from([0, 255, 1]), ...changes };
}

/** Opens an outbox. Call `close` in `afterAll`. */
export async function openTestOutbox(): Promise<TestOutbox> {
  const database = await createTestDatabase();
  // Which an outbox relies on: above it, who meets a change of somebody else fails instead of going on with it.
  const url = new URL(database.connectionString);
  url.searchParams.set('options', '-c default_transaction_isolation=read\\ committed');
  const connections = connect({ connectionString: url.href });
  const outbox = createOutbox();
  return {
    database,
    connections,
    add: (event) => connections.business.$transaction((tx) => outbox.add(tx, eventOf(event))),
    relay: (options = {}) => {
      const delivered: DeliverableEvent[] = [];
      const told: RelayEvent[] = [];
      const relay = createRelay({
        ...{ client: connections.business, initialBackoffMs: 1, maxBackoffMs: 1 },
        ...options,
        onEvent: (event) => void told.push(event),
        deliver: async (event, context) => {
          await options.deliver?.(event, context);
          delivered.push(event);
        },
      });
      return { ...relay, delivered, told };
    },
    close: async () => {
      await connections.close();
      await database.drop();
    },
  };
}

/** A row of the outbox as tests look at it. */
export interface StoredEvent {
  readonly event_id: string;
  readonly aggregate_id: string;
  readonly state: string;
  readonly attempts: number;
  readonly last_error: string | null;
  readonly previous_id: string | null;
}

/** All events, in the order of their positions. */
export function storedEvents({ database }: Pick<TestOutbox, 'database'>): Promise<StoredEvent[]> {
  return database.rows<StoredEvent>('SELECT * FROM outbox_events ORDER BY position');
}

/** Lets every lease of a relay be over. */
export async function endLeases({ database }: Pick<TestOutbox, 'database'>): Promise<void> {
  await database.rows('UPDATE outbox_aggregates SET due_at = now() WHERE claim_token IS NOT NULL');
}
