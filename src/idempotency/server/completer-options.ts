/** How half-finished requests are looked for and resumed. */
export interface CompleterOptions {
  /** From the end of one look to the next, milliseconds; up to a fifth more, so that processes look apart. Default 5,000. */
  readonly everyMs?: number;
  /** Most requests that one look takes up. Default 10. */
  readonly batch?: number;
  /** Most resumed requests that run in this process at once. Default 10. */
  readonly mostAtOnce?: number;
  /**
   * How long after the end of its lease a request is taken up that was tried once, milliseconds: until then its caller's
   * retry is awaited. Twice as long after each further attempt, an hour at most, so that an outage does not use up the
   * attempts after which a request is parked. Default 10,000.
   */
  readonly graceMs?: number;
}

/** Options with their defaults. */
export type CompleterSettings = Readonly<Required<CompleterOptions>>;

/** @throws RangeError that names what is not a positive whole number */
export function completerSettings(options: CompleterOptions): CompleterSettings {
  const settings = { everyMs: 5_000, batch: 10, mostAtOnce: 10, graceMs: 10_000, ...options };
  for (const [name, value] of Object.entries(settings)) {
    if (Number.isInteger(value) && value >= 1) continue;
    throw new RangeError(`createCompleter: ${name}: expected a positive whole number; got ${value}`);
  }
  return settings;
}
