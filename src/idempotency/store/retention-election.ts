import { randomUUID } from 'node:crypto';
import { again } from './again';
import type { SqlClient } from './database';
import { ELECT, RENEW_IF_ELECTED, RESIGN_IF_ELECTED } from './sql/retention';

/** The maintenance lease in the hands of this process. */
export interface Office {
  /** False once it was lost, or could not be prolonged: the round then ends after the step it is in. */
  isHeld(): boolean;
  /** Gives it back. Never rejects: what can't be given back runs out. */
  resign(): Promise<void>;
}

/**
 * Takes the maintenance lease, and prolongs it every third of its length. A lease row and no lock, since a lock ends with
 * its transaction and DETACH CONCURRENTLY runs in none. It only saves work: a round must be safe when two run it.
 *
 * @returns undefined where another process holds it
 */
export async function standForElection(
  client: SqlClient,
  instance: string,
  leaseMs: number,
): Promise<Office | undefined> {
  const token = randomUUID();
  const elected = await again(() => client.$queryRawUnsafe<unknown[]>(ELECT, token, instance, leaseMs));
  if (elected.length === 0) return undefined;
  let isHeld = true;
  let renewal = Promise.resolve();
  const renew = async (): Promise<void> => {
    try {
      const renewed = await again(() => client.$queryRawUnsafe<unknown[]>(RENEW_IF_ELECTED, token, leaseMs));
      isHeld &&= renewed.length > 0;
    } catch {
      isHeld = false;
    }
  };
  const timer = setInterval(() => {
    renewal = renewal.then(renew);
  }, leaseMs / 3);
  timer.unref();
  return {
    isHeld: () => isHeld,
    resign: async () => {
      clearInterval(timer);
      await renewal;
      await client.$queryRawUnsafe(RESIGN_IF_ELECTED, token).catch(() => undefined);
    },
  };
}
