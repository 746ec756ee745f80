import { randomUUID } from 'node:crypto';
import { type ListedBy, pageToken, readPageToken } from '../../src/payments/page-token';

const LIST: ListedBy = { scope: 'account-1', orderId: 'order-1' };
const ID = '0b0d1a5e-52a8-4f4e-8b6c-0a3c5e7d9f10';

describe('a page token', () => {
  it('leads back to the payment that it was made for', () => {
    for (const id of [ID, randomUUID(), randomUUID()]) expect(readPageToken(LIST, pageToken(LIST, id))).toBe(id);
  });

  it('can be part of a URL', () => {
    for (let made = 0; made < 50; made += 1) expect(pageToken(LIST, randomUUID())).toMatch(/^[\w-]{32}$/);
  });

  test.each<[string, ListedBy]>([
    ['another account', { ...LIST, scope: 'account-2' }],
    ['another order', { ...LIST, orderId: 'order-2' }],
    ['all orders', { ...LIST, orderId: '' }],
    ['an account and an order that are the same text together', { scope: 'account-1o', orderId: 'rder-1' }],
  ])('says nothing in the list of %s', (_, list) => {
    expect(readPageToken(list, pageToken(LIST, ID))).toBeUndefined();
  });

  it('is refused when any one character of it was changed', () => {
    const token = pageToken(LIST, ID);
    for (let at = 0; at < token.length; at += 1) {
      const other = token[at] === 'A' ? 'B' : 'A';
      expect(readPageToken(LIST, token.slice(0, at) + other + token.slice(at + 1))).toBeUndefined();
    }
  });

  it('is refused when it was cut off anywhere', () => {
    const token = pageToken(LIST, ID);
    for (let length = 0; length < token.length; length += 1) {
      expect(readPageToken(LIST, token.slice(0, length))).toBeUndefined();
    }
  });

  test.each([
    ['padding behind it', (token: string) => `${token}=`],
    ['a line end behind it', (token: string) => `${token}\n`],
    ['a character of no alphabet inside it', (token: string) => `${token.slice(0, 8)}.${token.slice(8)}`],
    ['itself behind it', (token: string) => token + token],
    // This id has both characters that the two alphabets of base64 differ in.
    ['the other alphabet', (token: string) => token.replaceAll('-', '+').replaceAll('_', '/')],
  ])('is refused with %s, so that a place has one token', (_, change) => {
    const id = 'fbefbeff-ffff-4f4e-8b6c-0a3c5e7d9f10';
    const token = pageToken(LIST, id);
    expect(change(token)).not.toBe(token);
    expect(readPageToken(LIST, change(token))).toBeUndefined();
  });
});
