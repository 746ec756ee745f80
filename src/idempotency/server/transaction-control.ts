/** What ends a transaction or begins one, by its first words. */
const CONTROL: readonly RegExp[] = [
  /^(COMMIT|END|ABORT|BEGIN)\b/,
  /^(START TRANSACTION)\b/,
  /^(PREPARE TRANSACTION)\b/,
  // To a savepoint is within the transaction.
  /^(ROLLBACK)\b(?!( WORK| TRANSACTION)? TO\b)/,
];

/** Enough words to tell `ROLLBACK WORK TO` from `ROLLBACK WORK`. */
const WORDS_READ = 3;

/**
 * Refuses a raw statement that would end the transaction or begin another: what the handler wrote would be committed
 * before the fence has passed, or rolled back and still answered. Savepoints are let through.
 *
 * @param operation what was called on `tx`, as `$executeRaw`
 * @param values what it was called with, in any form that Prisma takes
 * @throws {Error} that names the statement
 */
export function refuseTransactionControl(operation: string, [query, ...values]: readonly unknown[]): void {
  for (const text of textsOf(query, values)) {
    const words = firstWords(text);
    const control = CONTROL.map((pattern) => pattern.exec(words)?.[1]).find((found) => found !== undefined);
    if (control === undefined) continue;
    throw new Error(
      `${control} is not offered inside complete: its transaction is ended by the library; ${operation} was not run`,
    );
  }
}

/** The texts that Prisma may send for a query: a string, a template with its values, or an object that holds one. */
function textsOf(query: unknown, values: readonly unknown[]): readonly string[] {
  if (typeof query === 'string') return [query];
  if (Array.isArray(query)) {
    // A value of a template may itself be a piece of SQL; of any other only the place matters.
    return [query.map((part, index) => `${String(part)}${pieceOf(values[index])}`).join('')];
  }
  if (typeof query !== 'object' || query === null) return [];
  return ['sql', 'text'].map((name): unknown => Reflect.get(query, name)).filter((text) => typeof text === 'string');
}

function pieceOf(value: unknown): string {
  if (typeof value !== 'object' || value === null || !('sql' in value)) return ' $ ';
  return typeof value.sql === 'string' ? value.sql : ' $ ';
}

/** The words that a statement begins with, in capitals and with one space between them; empty where it begins otherwise. */
function firstWords(text: string): string {
  const words: string[] = [];
  // Postgres takes empty statements before the one that it runs.
  let rest = afterBlanks(text, /^[\s;]+/);
  while (words.length < WORDS_READ) {
    const [word] = /^[\w$\u0080-\uffff]+/.exec(rest) ?? [];
    if (word === undefined) break;
    words.push(word.toUpperCase());
    rest = afterBlanks(rest.slice(word.length), /^\s+/);
  }
  return words.join(' ');
}

/** The text after its leading blanks and comments. */
function afterBlanks(text: string, blanks: RegExp): string {
  let rest = text;
  for (;;) {
    const before = rest;
    rest = rest.replace(blanks, '').replace(/^--[^\n\r]*/, '');
    if (rest.startsWith('/*')) rest = rest.slice(lengthOfComment(rest));
    if (rest === before) return rest;
  }
}

/** Comments of Postgres nest. */
function lengthOfComment(text: string): number {
  let depth = 0;
  for (const { 0: mark, index } of text.matchAll(/\/\*|\*\//g)) {
    depth += mark === '/*' ? 1 : -1;
    if (depth === 0) return index + mark.length;
  }
  return text.length;
}
