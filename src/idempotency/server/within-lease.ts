import type { KeptLease } from './kept-lease';

/** With less of its lease left, an attempt renews once before a transaction. */
const NEARLY_ALL = 0.9;

/**
 * Runs a fenced transaction within the lease. The lease is not renewed meanwhile, since that would defeat the
 * transaction above READ COMMITTED; so it is made long enough before, and the transaction may take what is left of it.
 *
 * @param work gets how long the transaction may take, milliseconds
 * @returns what the work returned, or undefined when the claim is lost and it was not run
 */
export async function withinLease<Result>(
  lease: KeptLease,
  work: (limitMs: number) => Promise<Result>,
): Promise<Result | undefined> {
  await lease.pause();
  try {
    if (lease.leftMs() < NEARLY_ALL * lease.leaseMs && !(await lease.prolong())) return undefined;
    // Where it could not be renewed, the fence will tell whether it is over.
    return await work(Math.ceil(Math.max(lease.leftMs(), lease.leaseMs / 3)));
  } finally {
    lease.resume();
  }
}
