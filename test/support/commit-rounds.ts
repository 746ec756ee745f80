/**
 * How often each way to lose a COMMIT is tried: COMMIT_CUT_ROUNDS, else the number given, which keeps a routine run short.
 *
 * @throws RangeError where it is not a positive whole number
 */
export function commitRounds(otherwise: number): number {
  const rounds = Number(process.env['COMMIT_CUT_ROUNDS'] ?? otherwise);
  if (Number.isInteger(rounds) && rounds > 0) return rounds;
  throw new RangeError('COMMIT_CUT_ROUNDS: expected a positive whole number');
}

/** Collects what would end a process that does not look after its promises. Call `stop` at the end. */
export function watchRejections(): { readonly seen: readonly unknown[]; stop(): void } {
  const seen: unknown[] = [];
  const note = (reason: unknown): void => void seen.push(reason);
  process.on('unhandledRejection', note);
  return { seen, stop: () => void process.off('unhandledRejection', note) };
}
