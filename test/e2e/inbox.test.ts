import { Registry } from 'prom-client';
import { connect, type Database } from '../../src/database/connect';
import { createOutboxMetrics } from '../../src/ops/outbox-metrics';
import { createInbox } from '../../src/outbox/inbox';
import { createTestDatabase, type TestDatabase } from '../support/postgres';

/** Twenty transactions on ten connections take turns. */
const PATIENT = { maxWait: 20_000, timeout: 20_000 };

let database: TestDatabase;
let processes: readonly Database[];

beforeAll(async () => {
  database = await createTestDatabase();
  await database.rows('CREATE TABLE effects (consumer text NOT NULL)');
  const { connectionString } = database;
  processes = [connect({ connectionString }), connect({ connectionString })];
});

beforeEach(() => database.rows('TRUNCATE effects, inbox_messages'));

afterAll(async () => {
  await Promise.all(processes.map((connections) => connections.close()));
  await database.drop();
});

/** Delivers a message to a consumer in one of its two processes. */
function deliver(consumer: string, messageId: string, copy: number, onDuplicate: () => void = () => undefined) {
  const inbox = createInbox({ consumer, onDuplicate });
  const connections = processes[copy % processes.length];
  if (connections === undefined) throw new Error('no process');
  return connections.business.$transaction(
    (tx) =>
      inbox.once(tx, messageId, async (transaction) => {
        await transaction.$executeRawUnsafe('INSERT INTO effects VALUES ($1)', consumer);
        return copy;
      }),
    PATIENT,
  );
}
const effects = () => database.rows('SELECT consumer, count(*)::int FROM effects GROUP BY consumer ORDER BY consumer');

it('20 copies at once to each of 2 consumers have one effect each; the others are told and counted (case L1)', async () => {
  const registry = new Registry();
  const { onDuplicate } = createOutboxMetrics(registry);
  const outcomes = await Promise.all(
    ['mailer', 'ledger'].flatMap((consumer) =>
      Array.from({ length: 20 }, (_, copy) => deliver(consumer, 'message-1', copy, onDuplicate)),
    ),
  );
  expect(outcomes.filter(({ kind }) => kind === 'processed')).toHaveLength(2);
  expect(outcomes.filter(({ kind }) => kind === 'duplicate')).toHaveLength(38);
  expect(await effects()).toEqual([
    { consumer: 'ledger', count: 1 },
    { consumer: 'mailer', count: 1 },
  ]);
  expect(await registry.metrics()).toContain('inbox_duplicates_total 38');
});

it('a copy whose predecessor rolled back is taken (case D2)', async () => {
  const inbox = createInbox({ consumer: 'mailer' });
  const failed = processes[0]?.business.$transaction((tx) =>
    inbox.once(tx, 'message-1', async (transaction) => {
      await transaction.$executeRawUnsafe(`INSERT INTO effects VALUES ('mailer')`);
      throw new Error('the work failed');
    }),
  );
  await expect(failed).rejects.toThrow('the work failed');
  expect(await deliver('mailer', 'message-1', 7)).toEqual({ kind: 'processed', value: 7 });
  expect(await deliver('mailer', 'message-1', 8)).toEqual({ kind: 'duplicate' });
  expect(await effects()).toEqual([{ consumer: 'mailer', count: 1 }]);
});

it('what was taken long ago is forgotten, of this consumer alone', async () => {
  await deliver('mailer', 'old', 0);
  await deliver('ledger', 'old', 0);
  await database.rows(`UPDATE inbox_messages SET received_at = now() - interval '31 days'`);
  await deliver('mailer', 'young', 0);
  const [first] = processes;
  if (first === undefined) throw new Error('no process');
  expect(await createInbox({ consumer: 'mailer' }).purge(first.business, 30 * 86_400_000)).toBe(1);
  expect(await database.rows('SELECT consumer, message_id FROM inbox_messages ORDER BY consumer')).toEqual([
    { consumer: 'ledger', message_id: 'old' },
    { consumer: 'mailer', message_id: 'young' },
  ]);
});

it.each(['', 'x'.repeat(256), 'a\u0000', '\ud800', undefined as unknown as string])(
  'a message without a usable id is refused and nothing is done (%j)',
  async (messageId) => {
    await expect(deliver('mailer', messageId, 0)).rejects.toThrow('messageId: expected a text of 1 to 255 characters');
    expect(() => createInbox({ consumer: messageId })).toThrow('consumer: expected a text of 1 to 255 characters');
    expect(await effects()).toEqual([]);
  },
);
