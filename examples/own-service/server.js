/**
 * A service of your own behind this library: `DATABASE_URL=postgres://… node examples/own-service/server.js`, once
 * `npx grpc-idempotency migrate` has run on that database. docs/adopting.md goes through it.
 */
const { randomUUID } = require('node:crypto');
const { clearInterval, setInterval } = require('node:timers');
const { Server, ServerCredentials } = require('@grpc/grpc-js');
const { PrismaPg } = require('@prisma/adapter-pg');
const {
  createIdempotency,
  openPostgresStore,
  policiesFromPackageDefinition,
  runRetention,
} = require('grpc-idempotency');
// Yours is generated from your own schema, with your own models.
const { PrismaClient } = require('../../dist/gen/prisma/client');
const { definition, ParcelsService } = require('./load-service');

const HOUR_MS = 3_600_000;

/** @param max most connections; @param options for Postgres, as `-c name=value` */
function openClient(max, options) {
  const connectionString = process.env.DATABASE_URL;
  return new PrismaClient({ adapter: new PrismaPg({ connectionString, max, options }), errorFormat: 'minimal' });
}

async function main() {
  const business = openClient(10); // what handlers write
  const records = openClient(4); // keys; of its own, so that slow handlers never keep a claim waiting
  const maintenance = openClient(1, '-c lock_timeout=2s'); // makes and drops the days of the records
  await business.$executeRaw`CREATE TABLE IF NOT EXISTS parcels (parcel_id uuid PRIMARY KEY, address text NOT NULL)`;

  const policies = policiesFromPackageDefinition(definition);
  const store = await openPostgresStore({ business, records, policies: policies.all() });
  // Before the first call, since a key needs the table of its day; then from time to time, in every process.
  const keepDays = async () => {
    const { faults } = await runRetention({ client: maintenance });
    for (const fault of faults) console.error(fault);
  };
  await keepDays();
  const retention = setInterval(() => void keepDays().catch(console.error), HOUR_MS);

  const idempotency = createIdempotency({
    policies,
    store,
    // The account of the caller, from what you have verified. Never from what a caller says of itself.
    principal: () => 'everybody',
    onEvent: (event) => {
      if (event.type === 'fault') console.error(event.path, event.what, event.error);
    },
  });
  const server = new Server({ interceptors: [idempotency.interceptor] });
  idempotency.addService(server, ParcelsService.service, {
    // The name as the service definition has it: proto-loader's are `ShipParcel`, those of ts-proto `shipParcel`.
    ShipParcel: (request, attempt) =>
      attempt.complete(async (tx) => {
        const parcelId = randomUUID();
        await tx.$executeRaw`INSERT INTO parcels VALUES (${parcelId}::uuid, ${request.address})`;
        return { parcelId };
      }),
  });

  const address = process.env.PARCELS_ADDRESS ?? '127.0.0.1:50070';
  server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => {
    if (error) throw error;
    console.log(`parcels on 127.0.0.1:${port}`);
  });

  const stop = async () => {
    clearInterval(retention);
    await new Promise((resolve) => server.tryShutdown(resolve)); // no new calls
    await idempotency.idle(); // handlers whose callers have hung up
    await Promise.all([business, records, maintenance].map((client) => client.$disconnect()));
  };
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void stop());
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
