import { connect } from '../../src/database/connect';
import type { PrismaClient } from '../../src/gen/prisma/client';
import { createIntents, INTENT_TABLE_SQL, type IntentOptions, type Intents } from '../../src/idempotency/index';
import { parseKey } from '../../src/idempotency/key';
import { createTestDatabase, type TestDatabase } from './postgres';

/** A caller's own database, with the table of intents. */
export interface CallersDatabase {
  readonly database: TestDatabase;
  readonly client: PrismaClient;
  /** Intents as a process of the application `shop` keeps them. */
  readonly intents: (options?: Partial<IntentOptions>) => Intents;
  /** The id of a draft that nothing knows yet. */
  newDraft(): string;
  /** Lets the key of an intent expire. */
  expire(draftId: string): Promise<void>;
  close(): Promise<void>;
}

/** Makes a database with nothing but the table of intents. Call `close` in `afterAll`. */
export async function createCallersDatabase(): Promise<CallersDatabase> {
  const database = await createTestDatabase({ empty: true });
  await database.rows(INTENT_TABLE_SQL);
  const connections = connect({ connectionString: database.connectionString });
  const client = connections.business;
  let drafts = 0;
  return {
    database,
    client,
    intents: (options = {}) => createIntents({ client, producer: 'shop', ...options }),
    newDraft: () => `draft-${(drafts += 1)}`,
    expire: async (draftId) => {
      await database.rows(
        `UPDATE idempotency_intent
         SET created_at = created_at - (expires_at - now()), expires_at = now() WHERE draft_id = $1`,
        [draftId],
      );
    },
    close: async () => {
      await connections.close();
      await database.drop();
    },
  };
}

/** The date inside a key, epoch milliseconds. */
export function dateOfKey(requestId: string): number {
  const reading = parseKey([requestId], 'UUID_V7');
  if (reading.kind !== 'key' || reading.key.dated === undefined) throw new Error(`${requestId} is not a dated key`);
  return reading.key.dated.atMs;
}
