import { randomUUID } from 'node:crypto';
import { chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { callUntilAnswered } from '../support/call-until-answered';
import { connectionStringOf, notedPostgres, removeDataDirectory } from '../support/data-directory';
import { changedDescriptorSet } from '../support/descriptor-set';
import { isOpenToOthers, nobody } from '../support/ordinary-user';
import { paymentRequest } from '../support/payment-requests';
import { inCluster, makeTemporaryDirectory } from '../support/postgres';
import { isAlive } from '../support/processes';
import { type ServiceProcess, type ServiceProcessOptions, startServiceProcess } from '../support/service-process';
import { createStockClient, type StockCall } from '../support/stock-client';
import { until } from '../support/until';

// New databases, and processes of their own, on a busy machine.
jest.setTimeout(120_000);

const descriptorSet = Buffer.from(changedDescriptorSet({ CreatePayment: { leaseMs: 2_000 } })).toString('base64');

interface Place {
  readonly dataDirectory: string;
  readonly user?: NonNullable<ServiceProcessOptions['user']>;
}

/** Below a directory that nobody else can enter: a clone in the home of whoever runs the tests. */
async function closedDirectory(): Promise<Place> {
  const closed = join(await makeTemporaryDirectory(), 'closed');
  await mkdir(closed, { mode: 0o700 });
  return { dataDirectory: join(closed, 'data') };
}

/** The home of an ordinary user, who runs it. */
async function ordinaryUser(): Promise<Place> {
  const { uid, gid } = nobody;
  const home = join(await makeTemporaryDirectory(), 'home');
  await mkdir(home, { mode: 0o700 });
  await chown(home, uid, gid);
  return { dataDirectory: join(home, 'data'), user: { uid, gid, temporaryDirectory: home } };
}

const PLACES: readonly (readonly [string, () => Promise<Place>])[] = [
  ['below a directory closed to others', closedDirectory],
  ...(isOpenToOthers ? [['in the home of an ordinary user', ordinaryUser] as const] : []),
];
if (!isOpenToOthers)
  console.info('Skipped where not run as root, or where other users cannot enter: the service of another user.');

describe.each(PLACES)('a service with a database of its own, %s, killed while it pays', (_, findPlace) => {
  let place: Place;
  let service: ServiceProcess;
  const pay: StockCall = { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() };

  const start = async (options: Pick<ServiceProcessOptions, 'authorizerWaits'>): Promise<void> => {
    const { dataDirectory, user } = place;
    service = await startServiceProcess({
      ...{ connectionString: '', descriptorSet, environment: { DATA_DIRECTORY: dataDirectory }, ...options },
      ...(user === undefined ? {} : { user }),
    });
  };

  /** Starts, begins to pay, and is killed; `kill` gets the process id of the database. */
  const killWhilePaying = async (kill: (postgres: number) => void): Promise<void> => {
    await start({ authorizerWaits: true });
    const client = createStockClient(service.grpcPort);
    let cut = client.call(pay);
    // While the claim of the one that was killed before still holds, it is told to come again.
    await until('the authorizer was asked', async () => {
      if ((await Promise.race([service.authorizerAsked(1), cut])) === undefined) return true;
      cut = client.call(pay);
      return false;
    });
    const postgres = (await notedPostgres(place.dataDirectory)) ?? NaN;
    kill(postgres);
    expect((await cut).code).toBe(status.UNAVAILABLE);
    await service.exited;
    await until('the database is gone', async () => !(await isAlive(postgres)));
    client.close();
  };

  beforeAll(async () => (place = await findPlace()));
  afterAll(async () => {
    service.kill('SIGKILL');
    await service.exited;
    await removeDataDirectory(place.dataDirectory);
  });

  it('starts again and pays once, be it alone that was killed or its database with it', async () => {
    await killWhilePaying(() => service.kill('SIGKILL'));
    await killWhilePaying((postgres) => {
      process.kill(postgres, 'SIGKILL');
      service.kill('SIGKILL');
    });

    await start({});
    const client = createStockClient(service.grpcPort);
    const { answer } = await callUntilAnswered(client, pay);
    expect(answer.code).toBe(status.OK);
    const again = await client.call(pay);
    expect(again.bytes).toEqual(answer.bytes);
    expect(again.trailers.get('idempotent-replayed')).toEqual(['true']);
    client.close();
    await inCluster(await connectionStringOf(place.dataDirectory), async (connection) => {
      const { rows } = await connection.query('SELECT state, attempt FROM idempotency_record');
      // Takeovers don't wait for the disk: one that the crash of the database lost leaves a stale owner, whom the fence refuses.
      expect(rows).toEqual([{ state: 'completed', attempt: expect.any(Number) as unknown }]);
      expect([2, 3]).toContain((rows as readonly { readonly attempt: number }[])[0]?.attempt);
      expect((await connection.query('SELECT 1 FROM payments')).rowCount).toBe(1);
    });
  });
});
