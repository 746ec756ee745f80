import { readFileSync } from 'node:fs';

/** Who may call, as a file says it. */
export interface Accounts {
  /** Token → the stable account it belongs to. Several tokens may name one account: that is how one is replaced. */
  readonly byToken: ReadonlyMap<string, string>;
}

/** The file can't be used. Its message names every fault at once and holds no token. */
export class AccountFileError extends Error {
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
  const faults: string[] = [];
  const content = parse(path);
  const tokens = textMap(content['tokens'], 'tokens', faults);
  const aliases = textMap(content['aliases'] ?? {}, 'aliases', faults);
  for (const name of Object.keys(content)) {
    if (name !== 'tokens' && name !== 'aliases') faults.push(`${name}: expected only "tokens" and "aliases"`);
  }
  for (const [name, account] of aliases) {
    if (aliases.has(account)) faults.push(`aliases: ${name} leads to ${account}, which is an alias itself`);
  }
  let position = 0;
  for (const [token] of tokens) {
    position += 1;
    if (token.length < SHORTEST_TOKEN || !TOKEN.test(token)) {
      faults.push(`tokens: number ${position} is no bearer token of ${SHORTEST_TOKEN} characters or more`);
    }
  }
  if (faults.length === 0 && tokens.size === 0) faults.push('tokens: expected at least one');
  if (faults.length > 0) throw new AccountFileError(path, faults);
  return { byToken: new Map([...tokens].map(([token, name]) => [token, aliases.get(name) ?? name])) };
}

function parse(path: string): Readonly<Record<string, unknown>> {
  try {
    const content: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof content === 'object' && content !== null && !Array.isArray(content)) return { ...content };
  } catch (error) {
    // A syntax error quotes the text around it, which may be a token.
    const reason = error instanceof SyntaxError ? 'it is not JSON' : String((error as NodeJS.ErrnoException).code);
    throw new AccountFileError(path, [reason]);
  }
  throw new AccountFileError(path, ['expected a JSON object']);
}

function textMap(value: unknown, name: string, faults: string[]): ReadonlyMap<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    faults.push(`${name}: expected an object`);
    return new Map();
  }
  const entries = Object.entries(value);
  const texts = entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== '');
  if (texts.length < entries.length) faults.push(`${name}: expected every value to be the name of an account`);
  return new Map(texts);
}
