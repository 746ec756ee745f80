import { link, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { makeDataDirectory } from './data-directory';
import { uniqueSuffix } from './unique-suffix';
import { OperatorError } from '../operator-error';

/** Longest path of a socket that every system takes: `sun_path` has 104 bytes on macOS, 108 on Linux. */
const SOCKET_PATH_BYTES = 103;

/** How the system says that nothing can be written in a directory; below /proc it denies that there is one. */
const NOT_WRITABLE: readonly unknown[] = ['EACCES', 'EPERM', 'EROFS', 'ENOENT'];

/** Somebody else holds the data directory. */
export class DataDirectoryInUse extends OperatorError {
  override readonly name = 'DataDirectoryInUse';

  /** @param dataDirectory absolute path */
  constructor(readonly dataDirectory: string) {
    super(
      `The data directory ${dataDirectory} is in use by another running process. Stop that one, or set DATA_DIRECTORY ` +
        'to another directory.',
    );
  }
}

/** This user has no rights in the data directory. */
class DataDirectoryNotWritable extends OperatorError {
  override readonly name = 'DataDirectoryNotWritable';

  constructor(dataDirectory: string, cause: Error) {
    super(
      `The data directory ${dataDirectory} can't be written (${cause.message}). Start as the user who owns it, or set ` +
        'DATA_DIRECTORY to another directory.',
      { cause },
    );
  }
}

/** An exclusive right to a data directory. */
export interface DataDirectoryHold {
  /** Gives it up. Not needed for correctness: the end of the process does it too, however it ends. */
  release(): Promise<void>;
}

/**
 * Takes the exclusive right to a data directory, for as long as this process lives: the holder listens on a socket, and
 * the kernel closes that with the process, kill -9 included. Nothing has to be judged by age or by process id.
 *
 * Holds are numbered files that name their holder's socket. Whoever finds the newest holder dead creates the next number,
 * which only one can (`link` never replaces), and listens before it does. A number is free again only after a higher one
 * came, so whoever was late and took an old number sees the higher one and steps back.
 *
 * @throws DataDirectoryInUse when a living process holds it
 * @throws DataDirectoryUnusable, or another OperatorError, when it can't be made or written
 */
export async function holdDataDirectory(dataDirectory: string): Promise<DataDirectoryHold> {
  await makeDataDirectory(dataDirectory);
  const directory = join(resolve(dataDirectory), 'hold');
  const name = uniqueSuffix();
  const note = join(directory, `${name}.note`);
  const socket = socketPath(directory, name);
  const server = await listenIn(directory, socket).catch((error: NodeJS.ErrnoException) => {
    throw NOT_WRITABLE.includes(error.code) ? new DataDirectoryNotWritable(resolve(dataDirectory), error) : error;
  });
  try {
    await writeFile(note, socket);
    for (;;) {
      const newest = await newestNumber(directory);
      if (await isHeld(directory, newest)) throw new DataDirectoryInUse(resolve(dataDirectory));
      const mine = newest + 1;
      if ((await createNumber(note, directory, mine)) && (await newestNumber(directory)) === mine) {
        await removeOlder(directory, mine);
        return { release: () => close(server) };
      }
    }
  } catch (error) {
    await close(server);
    throw error;
  } finally {
    await rm(note, { force: true });
  }
}

function socketPath(directory: string, name: string): string {
  const inPlace = join(directory, `${name}.sock`);
  return Buffer.byteLength(inPlace) <= SOCKET_PATH_BYTES ? inPlace : join(tmpdir(), `grpc-idempotency-${name}.sock`);
}

async function listenIn(directory: string, socket: string): Promise<Server> {
  await mkdir(directory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const server = createServer((connection) => connection.destroy()).listen(socket);
  await new Promise((done, reject) => server.once('listening', done).once('error', reject));
  // To hold a directory is no reason for a process to stay.
  return server.unref();
}

function close(server: Server): Promise<void> {
  // Whoever waits for the end of a hold must not find the process gone before it: what is waited for counts again.
  return new Promise((done) => server.ref().close(() => done()));
}

async function numbers(directory: string): Promise<readonly number[]> {
  return (await readdir(directory)).filter((name) => /^\d+$/.test(name)).map(Number);
}

/** 0 where nobody ever held it. */
async function newestNumber(directory: string): Promise<number> {
  return Math.max(0, ...(await numbers(directory)));
}

async function isHeld(directory: string, number: number): Promise<boolean> {
  const socket = await readFile(join(directory, String(number)), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (socket === undefined) return false;
  return new Promise((done) => {
    const connection = connect(socket);
    connection.once('connect', () => {
      connection.destroy();
      done(true);
    });
    // Anything but these two, a full queue for instance, comes from a holder that lives.
    connection.once('error', ({ code }: NodeJS.ErrnoException) => {
      done(code !== 'ECONNREFUSED' && code !== 'ENOENT');
    });
  });
}

/** False when somebody else was quicker. */
async function createNumber(note: string, directory: string, number: number): Promise<boolean> {
  return link(note, join(directory, String(number))).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return false;
      throw error;
    },
  );
}

async function removeOlder(directory: string, mine: number): Promise<void> {
  for (const number of (await numbers(directory)).filter((candidate) => candidate < mine)) {
    const path = join(directory, String(number));
    // The kernel closes the socket of a process that was killed, but leaves its name.
    await rm(await readFile(path, 'utf8'), { force: true });
    await rm(path, { force: true });
  }
}
