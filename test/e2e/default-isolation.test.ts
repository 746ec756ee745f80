import { payAndComplete, recordPayment, startAttemptService } from '../support/attempt-service';

/** Where the database gives transactions this level unless they say otherwise. */
async function levelsWhereDefaultIs(level: string): Promise<unknown[]> {
  const service = await startAttemptService({
    route: ({ connectionString }) => {
      const url = new URL(connectionString);
      url.searchParams.set('options', `-c default_transaction_isolation=${level.replaceAll(' ', '\\ ')}`);
      return Promise.resolve(url.href);
    },
  });
  const seen: unknown[] = [];
  const look = `SELECT current_setting('transaction_isolation') AS level`;
  try {
    service.handle({
      createPayment: async (request, attempt) => {
        await attempt.phase('draft', async (tx) => seen.push(...(await tx.$queryRawUnsafe<unknown[]>(look))));
        return attempt.complete(async (tx) => {
          seen.push(...(await tx.$queryRawUnsafe<unknown[]>(look)));
          return recordPayment(tx, request, attempt);
        });
      },
    });
    await service.pay();
    // What the handler asks for by itself is the database's to say.
    service.handle({ createPayment: payAndComplete });
    seen.push(...(await service.connections.business.$queryRawUnsafe<unknown[]>(look)));
    return seen;
  } finally {
    await service.stop();
  }
}

it.each(['repeatable read', 'serializable'])(
  'transactions of handlers are READ COMMITTED also where the default is %s: who waited for a lock sees what was done (design 4.8)',
  async (level) => {
    const committed = { level: 'read committed' };
    expect(await levelsWhereDefaultIs(level)).toEqual([committed, committed, { level }]);
  },
);
