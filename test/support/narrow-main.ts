/** Services under test with few connections, whose handlers ask the database on a client of their own around their work. */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Prisma } from '../../src/gen/prisma/client';
import { type AttemptService, payAndComplete, startAttemptService } from './attempt-service';
import type { FromNarrow, NarrowOptions, NarrowService } from './narrow-process';
import { openDatabase } from './postgres';

async function main(options: NarrowOptions): Promise<void> {
  const services = await Promise.all(options.map(serve));
  tell({ type: 'ready', ports: services.map(({ port }) => port) });
  await once(process, 'message');
  await Promise.all(services.map((service) => service.stop()));
  const events = services.flatMap((service) => service.events);
  tell({ type: 'ended', faults: events.flatMap((event) => (event.type === 'fault' ? [String(event.error)] : [])) });
}

async function serve({ connectionString, poolSize, maxWaitMs, workMs }: NarrowService): Promise<AttemptService> {
  const service = await startAttemptService({
    database: openDatabase(connectionString, () => Promise.resolve()),
    pools: { businessPoolSize: poolSize, storePoolSize: poolSize },
    policy: { maxWaitMs },
  });
  const client: Prisma.TransactionClient = service.connections.business;
  service.handle({
    createPayment: async (request, attempt) => {
      await client.$queryRaw`SELECT 1 AS one`;
      await delay(workMs);
      await client.$queryRaw`SELECT 2 AS two`;
      return payAndComplete(request, attempt);
    },
  });
  return service;
}

function tell(message: FromNarrow): void {
  process.send?.(message);
}

// A test that ends takes its processes with it, however it ends.
process.once('disconnect', () => process.exit(1));
main(JSON.parse(process.argv[2] ?? '[]') as NarrowOptions).catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
