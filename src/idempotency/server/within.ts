/**
 * Waits for what may give no answer, such as a statement on a connection whose other side is frozen. It goes on by itself;
 * only the wait ends.
 *
 * @param ms milliseconds
 * @throws Error when the time is over
 */
export async function within<Result>(ms: number, work: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${Math.round(ms)} ms`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
