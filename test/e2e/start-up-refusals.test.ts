import { once } from 'node:events';
import { readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { removeDataDirectory } from '../support/data-directory';
import { runMain } from '../support/main-process';
import { createTestDatabase, makeTemporaryDirectory, type TestDatabase } from '../support/postgres';

/** Runs the service to its end; what it printed must be for people. */
async function refused(environment: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const run = runMain(environment);
  // One that starts after all would never end.
  void run.printed(/^ready: /m).then(
    () => run.kill('SIGTERM'),
    () => undefined,
  );
  expect(await run.exited).toBe(1);
  expect(run.output()).not.toMatch(/^\s+at /m);
  expect(run.output()).not.toContain('s3cret');
  return run.output().trim().split('\n');
}

describe('the service does not start', () => {
  let database: TestDatabase;
  const listening: Server[] = [];

  beforeAll(async () => (database = await createTestDatabase()));
  afterAll(() => database.drop());
  afterEach(() => listening.splice(0).forEach((server) => server.close()));

  async function takenPort(): Promise<string> {
    const server = createServer().listen(0, '127.0.0.1');
    listening.push(server);
    await new Promise((resolve) => server.once('listening', resolve));
    return String((server.address() as AddressInfo).port);
  }

  it('with settings that cannot be used: it names them all, and no secret', async () => {
    const lines = await refused({
      GRPC_PORT: 'fifty',
      OPS_HOST: '0.0.0.0',
      LOG_LEVEL: 'loud',
      DATABASE_URL: 'mysql://shop:s3cret@127.0.0.1/shop',
    });
    expect(lines).toEqual([
      'settings that cannot be used:',
      '  GRPC_PORT is "fifty": expected a whole number from 0 to 65535',
      expect.stringMatching(/^ {2}OPS_HOST is "0\.0\.0\.0": expected 127\.0\.0\.1, ::1 or localhost/),
      expect.stringMatching(/^ {2}DATABASE_URL: expected a URL such as postgresql:/),
      expect.stringMatching(/^ {2}LOG_LEVEL is "loud": expected one of trace, /),
    ]);
  });

  it('where a variable was misspelled and what holds without it cannot be: it says which was probably meant', async () => {
    const port = await takenPort();
    const environment = { GRPC_PROT: 's3cret', GRPC_PORT: port, DATABASE_URL: database.connectionString };
    const [line = '', ...others] = await refused(environment);
    expect(JSON.parse(line)).toMatchObject({
      ...{ level: 'warn', variable: 'GRPC_PROT', nearest: 'GRPC_PORT' },
      msg: 'GRPC_PROT is no setting and is not read; was GRPC_PORT meant?',
    });
    expect(others).toEqual([expect.stringContaining(`The port ${port} on 127.0.0.1 is in use`)]);
  });

  it('on a port that is taken', async () => {
    const port = await takenPort();
    expect(await refused({ GRPC_PORT: port, DATABASE_URL: database.connectionString })).toEqual([
      `The port ${port} on 127.0.0.1 is in use by another process. Stop that process, or set GRPC_PORT to another port.`,
    ]);
  });

  it('on a port that is taken, and makes no database for that', async () => {
    const dataDirectory = await makeTemporaryDirectory();
    const port = await takenPort();
    expect(await refused({ OPS_PORT: port, DATA_DIRECTORY: dataDirectory })).toEqual([
      `The port ${port} on 127.0.0.1 is in use by another process. Stop that process, or set OPS_PORT to another port.`,
    ]);
    expect(await readdir(dataDirectory)).not.toContain('postgres');
    await removeDataDirectory(dataDirectory);
  });

  it('on two taken ports with a database that is not there: it names all three', async () => {
    const [grpcPort, opsPort] = [await takenPort(), await takenPort()];
    const url = 'postgresql://shop:s3cret@127.0.0.1:1/shop';
    expect(await refused({ GRPC_PORT: grpcPort, OPS_PORT: opsPort, DATABASE_URL: url })).toEqual([
      expect.stringContaining(`The port ${grpcPort} `),
      expect.stringContaining(`The port ${opsPort} `),
      "The database at 127.0.0.1:1 (DATABASE_URL) can't be used: connect ECONNREFUSED 127.0.0.1:1. Start it, or " +
        'correct DATABASE_URL.',
    ]);
  });

  it('with one port for both of its servers', async () => {
    expect(await refused({ GRPC_PORT: '50999', OPS_PORT: '50999' })).toEqual([
      'settings that cannot be used:',
      '  OPS_PORT is "50999": expected another port than that of GRPC_PORT',
    ]);
  });

  describe('with a data directory that', () => {
    let parent: string;
    beforeEach(async () => (parent = await makeTemporaryDirectory()));
    afterEach(() => rm(parent, { recursive: true }));

    const say = (dataDirectory: string, why: string): string =>
      `The data directory ${dataDirectory} can't be made: ${why}. Set DATA_DIRECTORY to a directory in one that you can ` +
      'write to.';

    it('is a file, or below one', async () => {
      const file = join(parent, 'notes');
      await writeFile(file, '');
      const below = join(file, 'data');
      expect(await refused({ DATA_DIRECTORY: file })).toEqual([say(file, `${file} is no directory`)]);
      expect(await refused({ DATA_DIRECTORY: below })).toEqual([
        say(below, `ENOTDIR: not a directory, stat '${below}'`),
      ]);
    });

    it('is a link to nowhere', async () => {
      const link = join(parent, 'data');
      await symlink(join(parent, 'nowhere'), link);
      expect(await refused({ DATA_DIRECTORY: link })).toEqual([
        say(link, `EEXIST: file already exists, mkdir '${link}'`),
      ]);
    });

    // Only Linux has a directory that is there and denies it when something is to be made in it.
    const onLinux = process.platform === 'linux' ? it : it.skip;

    onLinux('nobody can make, also when a port is taken', async () => {
      for (const environment of [{}, { OPS_PORT: await takenPort() }]) {
        const lines = await refused({ ...environment, DATA_DIRECTORY: '/proc/payments/data' });
        const [, why = ''] = /made: (E[A-Z]+: .+, mkdir '\/proc\/payments')\./.exec(lines.join()) ?? [];
        expect(lines).toEqual([say('/proc/payments/data', why)]);
      }
    });

    onLinux('nobody can write', async () => {
      expect(await refused({ DATA_DIRECTORY: '/proc' })).toEqual([
        expect.stringMatching(/^The data directory \/proc can't be written \(E[A-Z]+: .*set DATA_DIRECTORY to another/),
      ]);
    });
  });

  it('when it is told twice to end while it starts', async () => {
    const connections: Socket[] = [];
    const silent = createServer((connection) => connections.push(connection)).listen(0, '127.0.0.1');
    listening.push(silent);
    await once(silent, 'listening');
    const asked = once(silent, 'connection');
    const run = runMain({ DATABASE_URL: `postgresql://127.0.0.1:${(silent.address() as AddressInfo).port}/shop` });
    await asked;
    run.kill('SIGTERM');
    await run.printed(/stopping/);
    run.kill('SIGINT');
    expect(await run.exited).toBe(1);
    expect(run.output().trim().split('\n').at(-1)).toBe('ended by a second SIGINT during the start');
    for (const connection of connections) connection.destroy();
  });

  it('without a database that lets it in', async () => {
    const wrongPassword = new URL(database.connectionString);
    wrongPassword.password = 's3cret';
    const noDatabase = new URL(database.connectionString);
    noDatabase.pathname = '/nowhere';
    const say = (host: string, why: string): string =>
      `The database at ${host} (DATABASE_URL) can't be used: ${why}. Start it, or correct DATABASE_URL.`;

    expect(await refused({ DATABASE_URL: wrongPassword.href })).toEqual([
      say(wrongPassword.host, `password authentication failed for user "${wrongPassword.username}"`),
    ]);
    expect(await refused({ DATABASE_URL: noDatabase.href })).toEqual([
      say(noDatabase.host, 'database "nowhere" does not exist'),
    ]);
  });
});
