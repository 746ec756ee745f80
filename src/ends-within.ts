/**
 * Waits for work, but no longer than `ms` milliseconds. The work goes on by itself; only the wait ends.
 *
 * @returns whether it has ended by then; what it rejects with in time is thrown
 */
export async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, ms, false);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
