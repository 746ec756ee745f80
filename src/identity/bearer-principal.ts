import { createHash } from 'node:crypto';
import type { Principal } from '../idempotency/index';
import type { Accounts } from './account-file';

/** One scheme with one token: several values, which arrive as one text with commas, are nobody. */
const BEARER = /^Bearer +([^\s,]+)$/i;

/**
 * Names the account whose token came in the metadata `authorization: Bearer …` (RFC 6750). Tokens are looked up by their
 * hash, so that how long it takes says nothing about how much of one was right.
 */
export function bearerPrincipal({ byToken }: Pick<Accounts, 'byToken'>): Principal {
  const byHash = new Map([...byToken].map(([token, account]) => [hash(token), account]));
  return ({ metadata }) => {
    const [value, ...others] = metadata.get('authorization');
    const token = typeof value === 'string' && others.length === 0 ? BEARER.exec(value)?.[1] : undefined;
    return token === undefined ? undefined : byHash.get(hash(token));
  };
}

function hash(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}
