import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { OperatorError } from '../operator-error';

/** Who may call, as a file says it. */
export interface Accounts {
  /** Token → the stable account it belongs to. Several tokens may name one account: that is how one is replaced. */
  readonly byToken: ReadonlyMap<string, string>;
  /** Every user of this machine can read the tokens. */
  readonly readableByOthers: boolean;
}

/** The file can't be used. Its message names every fault at once and holds no token. */
export class AccountFileError extends OperatorError {
  override readonly name = 'AccountFileError';

  constructor(path: string, faults: readonly string[]) {
    super([`the file of accounts ${path} can't be used:`, ...faults].join('\n  '));
  }
}

/** A token that can be guessed protects nothing. */
const SHORTEST_TOKEN = 16;

/** What may follow `Bearer ` (RFC 6750, 2.1). */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

/**
 * Reads a file of bearer tokens:
 *
 * ```json
 * { "tokens": { "<token>": "shop-eu" }, "aliases": { "shop-eu": "shop-1" } }
 * ```
 *
 * The account is part of every key's identity, so it has to stay: a changed one makes every earlier key a new one. Where
 * a name has to change, an alias maps the new name to the account that the keys belong to.
 *
 * @throws AccountFileError
 */
export function readAccountFile(path: string): Accounts {
  const { text, readableByOthers } = read(path);
  const content = parse(path, text);
  const faults: string[] = [];
  const tokens = accountNames(content['tokens'], 'tokens', faults);
  const aliases = accountNames(content['aliases'] ?? {}, 'aliases', faults);
  // Not named: it may be a token that slipped out of its place.
  const others = Object.keys(content).filter((name) => name !== 'tokens' && name !== 'aliases');
  if (others.length > 0) faults.push('expected nothing beside "tokens" and "aliases"');
  for (const [name, account] of aliases) {
    if (aliases.has(account)) faults.push(`aliases: ${name} leads to ${account}, which is an alias itself`);
  }
  const written = isObject(content['tokens']) ? Object.keys(content['tokens']) : [];
  faults.push(...written.flatMap((token, index) => tokenFaults(text, token, index + 1)));
  if (faults.length === 0 && tokens.size === 0) faults.push('tokens: expected at least one');
  if (faults.length > 0) throw new AccountFileError(path, faults);
  return { byToken: new Map([...tokens].map(([token, name]) => [token, aliases.get(name) ?? name])), readableByOthers };
}

function read(path: string): { readonly text: string; readonly readableByOthers: boolean } {
  try {
    const file = openSync(path, 'r');
    try {
      // Of the file that is read, not of the one that has its name by then.
      return { readableByOthers: (fstatSync(file).mode & 0o004) !== 0, text: readFileSync(file, 'utf8') };
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw new AccountFileError(path, [`it can't be read (${String((error as NodeJS.ErrnoException).code)})`]);
  }
}

function parse(path: string, text: string): Readonly<Record<string, unknown>> {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    // The error quotes the text around the fault, which may be a token.
    throw new AccountFileError(path, ['it is not JSON']);
  }
  if (isObject(content)) return content;
  throw new AccountFileError(path, ['expected a JSON object']);
}

/** Reads an object whose values are names of accounts. Its keys may be tokens, so no fault names one. */
function accountNames(value: unknown, name: string, faults: string[]): ReadonlyMap<string, string> {
  if (!isObject(value)) {
    faults.push(`${name}: expected an object`);
    return new Map();
  }
  const names = new Map<string, string>();
  Object.entries(value).forEach(([key, account], index) => {
    if (typeof account === 'string' && account !== '' && account === account.trim()) names.set(key, account);
    else
      faults.push(`${name}: number ${index + 1} has no name of an account, which is a text without spaces around it`);
  });
  return names;
}

function tokenFaults(text: string, token: string, position: number): readonly string[] {
  if (token.length < SHORTEST_TOKEN || !TOKEN.test(token)) {
    return [`tokens: number ${position} is no bearer token of ${SHORTEST_TOKEN} characters or more (RFC 6750)`];
  }
  // JSON keeps the last of two equal names, so the account of the first would silently lose its token.
  if (text.split(JSON.stringify(token)).length > 2) return [`tokens: number ${position} is in the file more than once`];
  return [];
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
