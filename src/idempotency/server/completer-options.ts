import { assertObject, faultsOfNames } from '../option-names';

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

const DEFAULTS: CompleterSettings = { everyMs: 5_000, batch: 10, mostAtOnce: 10, graceMs: 10_000 };

const NAMES = Object.keys(DEFAULTS) as readonly (keyof CompleterSettings)[];

/**
 * Fills in the defaults and checks every option.
 *
 * @throws TypeError that names each option at fault and what was expected, all at once
 */
export function completerSettings(options: CompleterOptions): CompleterSettings {
  assertObject('createCompleter', `{ ${NAMES.join(', ')} }`, options);
  const settings = { ...DEFAULTS, ...options };
  const faults = [
    ...faultsOfNames(options, new Set(NAMES)),
    ...NAMES.filter((name) => !isCount(settings[name])).map(
      (name) => `${name}: expected a positive whole number, got ${settings[name]}`,
    ),
  ];
  if (faults.length > 0) throw new TypeError(`createCompleter: ${faults.join('; ')}`);
  return settings;
}

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 1;
}
