/**
 * Finds names that no option has: an option that is misspelt would be one that silently does nothing, and for a key that
 * is a call without protection. The compiler says so in TypeScript; nobody does in JavaScript.
 *
 * @param given the options as they were given
 * @param known the names of all options that there are
 * @returns a line for each: the name, and what was probably meant, else what was expected
 */
export function faultsOfNames(given: object, known: ReadonlySet<string>): readonly string[] {
  const unknown = Object.keys(given).filter((name) => !known.has(name));
  return unknown.map((name) => {
    const nearest = [...known].find((one) => isMeantBy(name, one));
    if (nearest !== undefined) return `${name}: no such name; was ${nearest} meant?`;
    return `${name}: no such name; expected one of ${[...known].join(', ')}`;
  });
}

/** What is expected of an option; `isRight` says whether it is so. */
type Expect<Options> = (isRight: boolean, option: string & keyof Options, expected: string) => void;

/**
 * Checks options whole: that there are any, their names, their values.
 *
 * @param who takes them, as errors begin
 * @param expectedWhole what the options look like, for who gives none
 * @param names of all options that there are
 * @throws TypeError that names each option at fault and what was expected, all at once
 */
export function checkOptions<Options extends object>(
  who: string,
  expectedWhole: string,
  options: Options,
  names: ReadonlySet<string>,
  checkValues: (expect: Expect<Options>) => void,
): void {
  assertObject(who, expectedWhole, options);
  const faults: string[] = [...faultsOfNames(options, names)];
  checkValues((isRight, option, expected) => {
    if (!isRight) faults.push(`${option}: expected ${expected}, got ${kindOf(options[option])}`);
  });
  if (faults.length > 0) throw new TypeError(`${who}: ${faults.join('; ')}`);
}

/** @throws TypeError where something else stands in place of options */
export function assertObject(who: string, expectedWhole: string, options: unknown): void {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`${who}: expected ${expectedWhole}, got ${kindOf(options)}`);
  }
}

/** Says what a value is, for those who gave it in place of another; never the value itself, which may be secret. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (value instanceof Promise) return 'a promise: is an await missing?';
  if (typeof value === 'object') return Array.isArray(value) ? 'an array' : `an object (${nameOfClass(value)})`;
  return value === undefined ? 'nothing' : `a ${typeof value}`;
}

function nameOfClass(value: object): string {
  const { constructor: maker } = value;
  return typeof maker === 'function' ? maker.name : 'Object';
}

/** Other capitals, two letters that are wrong, missing or too many, or an end that is missing, such as that of a unit. */
function isMeantBy(name: string, known: string): boolean {
  const [written, meant] = [name.toLowerCase(), known.toLowerCase()];
  if (written.length < SHORTEST) return written === meant;
  return meant.startsWith(written) || editsBetween(written, meant) <= 2;
}

/** Of fewer letters, anything is two away from anything. */
const SHORTEST = 5;

/** How many letters have to be put in, taken out or replaced, at least (Levenshtein). */
function editsBetween(one: string, other: string): number {
  let before = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...one].entries()) {
    const row = [index + 1];
    for (let column = 1; column <= other.length; column += 1) {
      const replaced = (before[column - 1] ?? 0) + (other[column - 1] === letter ? 0 : 1);
      row.push(Math.min(replaced, (before[column] ?? 0) + 1, (row[column - 1] ?? 0) + 1));
    }
    before = row;
  }
  return before[other.length] ?? 0;
}
