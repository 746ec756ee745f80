import { type AddressInfo, connect as dial, createServer, type Server } from 'node:net';
import { connect } from '../../src/database/connect';
import { isOutage } from '../../src/idempotency/store/database-error';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { TRANSACTION_WAYS } from '../support/transaction-ways';

const READY_FOR_QUERY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

/** What a server says that shuts down just when somebody has connected. */
const TERMINATING = (() => {
  const fields = Buffer.from('SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0');
  const length = Buffer.alloc(4);
  length.writeInt32BE(fields.length + 4);
  return Buffer.concat([Buffer.from('E'), length, fields]);
})();

describe('a connection that ends with the answer that made it (case K8)', () => {
  let base: TestDatabase;
  let proxy: Server;

  beforeAll(async () => {
    base = await createTestDatabase();
    const { hostname, port } = new URL(base.connectionString);
    proxy = createServer((client) => {
      const server = dial(Number(port), hostname);
      client.pipe(server);
      server.on('data', (data) => {
        if (data.subarray(-READY_FOR_QUERY.length).equals(READY_FOR_QUERY)) {
          client.end(Buffer.concat([data, TERMINATING]));
        } else client.write(data);
      });
      for (const socket of [client, server]) socket.on('error', () => socket.destroy());
      client.on('close', () => server.destroy());
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  });

  afterAll(async () => {
    await base.drop();
    await new Promise((resolve) => proxy.close(resolve));
  });

  it.each(TRANSACTION_WAYS)('is an outage to its transaction %s, and the process goes on', async (_, way) => {
    const url = new URL(base.connectionString);
    url.port = String((proxy.address() as AddressInfo).port);
    const database = connect({ connectionString: url.href });

    const failed = await way(database)
      .$transaction((tx) => tx.$queryRawUnsafe('SELECT 1'), { isIdle: () => true })
      .catch((error: unknown) => error);

    expect(isOutage(failed)).toBe(true);
    await database.close();
  });
});
