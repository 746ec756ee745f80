import { createServer } from 'node:net';
import { OperatorError } from './operator-error';

/** What is said of an address that nobody can listen on here: it is of another machine, or of none. */
const NOT_OURS = ['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN'];

/**
 * Tries a port by listening on it for a moment; for port 0 on any, since the address may be wrong. Resolves with what is
 * in the way and the next step, and with nothing where it can be had.
 *
 * @param prefix of the variables that name address and port: `GRPC`
 */
export async function portObstacles(host: string, port: number, prefix: string): Promise<readonly string[]> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', ({ code = 'unknown' }: NodeJS.ErrnoException) => {
      if (NOT_OURS.includes(code)) {
        resolve([`The address ${host} is none of this machine (${code}). Set ${prefix}_HOST to one that is.`]);
        return;
      }
      const what = code === 'EADDRINUSE' ? 'in use by another process' : `not usable (${code})`;
      resolve([`The port ${port} on ${host} is ${what}. Stop that process, or set ${prefix}_PORT to another port.`]);
    });
    server.listen(port, host, () => server.close(() => resolve([])));
  });
}

/**
 * Tries the one port of a process before anything else is begun.
 *
 * @throws OperatorError that says what is in the way, and the next step
 */
export async function assertPortIsFree(host: string, port: number, prefix: string): Promise<void> {
  const obstacles = await portObstacles(host, port, prefix);
  if (obstacles.length > 0) throw new OperatorError(obstacles.join('\n'));
}
