import { isIPv6 } from 'node:net';
import { type Server, ServerCredentials } from '@grpc/grpc-js';

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

/**
 * Takes no new calls and lets those under way end; whatever still runs when the grace is over is cut.
 *
 * @param idle resolves when no handler runs, those included whose callers have hung up
 * @param graceMs milliseconds
 */
export async function drain(server: Server, idle: () => Promise<void>, graceMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const graceOver = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, graceMs);
  });
  const drained = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
  await Promise.race([Promise.all([idle(), drained.then(idle)]), graceOver]);
  clearTimeout(timer);
  server.forceShutdown();
}
