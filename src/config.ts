import { contradictions } from './setting-contradictions';
import { type Setting, SETTINGS } from './settings';
import { OperatorError } from './operator-error';

export { SETTINGS };

type Settings = typeof SETTINGS;

/** The settings of one process, read once at its start. */
export type Config = { readonly [Name in keyof Settings]: Settings[Name]['defaultValue'] };

/** A variable that can't be used. */
export interface SettingFault {
  readonly variable: string;
  /** As it was found; left out where it is a secret. */
  readonly value?: string;
  /** What would have been right. */
  readonly expected: string;
}

/** The environment can't be used. Its message names every fault at once, one a line, and is meant to be printed as it is. */
export class ConfigError extends OperatorError {
  override readonly name = 'ConfigError';

  constructor(readonly faults: readonly SettingFault[]) {
    super(['settings that cannot be used:', ...faults.map(describe)].join('\n  '));
  }
}

/**
 * Reads the settings from environment variables. An empty variable counts as unset, and one that is not in `SETTINGS` is
 * not looked at.
 *
 * @throws {ConfigError} with every fault there is, not only the first
 */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const faults: SettingFault[] = [];
  const entries = Object.entries<Setting<unknown>>(SETTINGS).map(
    ([name, { variable, defaultValue, secret, parse }]) => {
      const text = environment[variable];
      if (text === undefined || text === '') return [name, defaultValue];
      const parsed = parse(text);
      if (parsed.kind === 'value') return [name, parsed.value];
      faults.push({ variable, expected: parsed.expected, ...(secret ? {} : { value: text }) });
      return [name, undefined];
    },
  );
  // What could not be read is undefined here, and contradicts nothing.
  const values = Object.fromEntries(entries) as Partial<Config>;
  faults.push(...contradictions(values));
  if (faults.length > 0) throw new ConfigError(inOrder(faults));
  return Object.freeze(values) as Config;
}

/** In the order of the table, whichever check found them. */
function inOrder(faults: readonly SettingFault[]): readonly SettingFault[] {
  return Object.values<Setting<unknown>>(SETTINGS).flatMap(({ variable }) =>
    faults.filter((fault) => fault.variable === variable),
  );
}

function describe({ variable, value, expected }: SettingFault): string {
  return `${variable}${value === undefined ? '' : ` is ${JSON.stringify(value)}`}: expected ${expected}`;
}
