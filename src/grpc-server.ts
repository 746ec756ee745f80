import { isIPv6 } from 'node:net';
import { type Server, ServerCredentials } from '@grpc/grpc-js';
import { endsWithin } from './ends-within';

/** Starts to listen. Resolves with the port, which differs from the one asked for where that was 0. */
export function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const address = isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
}

/** How long answers may take to leave once no handler runs; what is open longer is a stream that never ends. */
const LEAVE_WITHIN_MS = 1_000;

/**
 * Takes no new calls and lets those under way end. Cut is what still runs when the grace is over, and at once what no
 * handler of ours works on: a health stream stays open as long as somebody watches (case N1).
 *
 * @param idle resolves when no handler runs, those included whose callers have hung up
 * @param graceMs milliseconds
 */
export async function drain(server: Server, idle: () => Promise<void>, graceMs: number): Promise<void> {
  const drained = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
  const finished = async (): Promise<void> => {
    await idle();
    await endsWithin(LEAVE_WITHIN_MS, drained);
    // A request that was on its way while we were idle.
    await idle();
  };
  await endsWithin(graceMs, finished());
  server.forceShutdown();
}
