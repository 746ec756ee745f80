import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Metadata } from '@grpc/grpc-js';
import { callerIdentity } from '../../src/identity/caller-identity';
import { bearerPrincipal } from '../../src/identity/bearer-principal';

const TOKEN = 'first-token-of-shop-1';

function asked(principal: ReturnType<typeof bearerPrincipal>, authorization: readonly (string | Buffer)[]) {
  const metadata = new Metadata();
  // One by one, as a transport that doesn't join values would hand them over.
  for (const value of authorization) metadata.add('authorization', value);
  return principal({ path: '/payments.v1.PaymentsService/GetPayment', metadata, authContext: {}, peer: 'unknown' });
}

describe('a bearer token', () => {
  const principal = bearerPrincipal({ byToken: new Map([[TOKEN, 'shop-1']]) });

  it.each([`Bearer ${TOKEN}`, `bearer ${TOKEN}`, `BEARER   ${TOKEN}`])('names its account: %s', (value) => {
    expect(asked(principal, [value])).toBe('shop-1');
  });

  it.each([
    TOKEN,
    `Basic ${TOKEN}`,
    `Bearer${TOKEN}`,
    `Bearer ${TOKEN}x`,
    `Bearer ${TOKEN.slice(0, -1)}`,
    `Bearer ${TOKEN.toUpperCase()}`,
    `Bearer ${TOKEN}, Bearer ${TOKEN}`,
    `Bearer ${TOKEN},Bearer ${TOKEN}`,
    `Basic abc, Bearer ${TOKEN}`,
    'Bearer ',
    'Bearer',
    'Bearer __proto__',
    '',
  ])('that is not one names nobody: %j', (value) => {
    expect(asked(principal, [value])).toBeUndefined();
  });

  it('is needed once: none or several values name nobody', () => {
    expect(asked(principal, [])).toBeUndefined();
    expect(asked(principal, [`Bearer ${TOKEN}`, `Bearer ${TOKEN}`])).toBeUndefined();
  });
});

describe('the identity of callers', () => {
  let tokensFile: string;

  beforeAll(() => {
    tokensFile = join(mkdtempSync(join(tmpdir(), 'grpc-idempotency-accounts-')), 'accounts.json');
    writeFileSync(tokensFile, JSON.stringify({ tokens: { [TOKEN]: 'shop-1' } }), { mode: 0o600 });
  });

  afterAll(() => rmSync(join(tokensFile, '..'), { recursive: true }));

  it('is one account for everybody without a file, which is warned of', () => {
    expect(callerIdentity({ tokensFile: undefined, reachable: false }).warnings).toEqual([
      'no identity is configured (AUTH_MODE=none): every caller is the account "local"',
    ]);
  });

  it('comes from the file; that tokens travel in the clear is warned of where others may listen', () => {
    expect(callerIdentity({ tokensFile, reachable: false }).warnings).toEqual([]);
    expect(callerIdentity({ tokensFile, reachable: true }).warnings).toEqual([
      'connections are not encrypted: tokens can be read on the way; use a network that you trust',
    ]);
  });
});
