import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AccountFileError, readAccountFile } from '../../src/identity/account-file';

const TOKEN = 'first-token-of-shop-1';
const OTHER_TOKEN = 'second~token.of_shop+1/==';
const SECRET = 'hunter2hunter2hunter2';

let directory: string;
let path: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'grpc-idempotency-accounts-'));
  path = join(directory, 'accounts.json');
});

afterAll(() => rmSync(directory, { recursive: true }));

function read(content: unknown) {
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return readAccountFile(path);
}

/** The faults of a file, one a line. */
function faultsOf(content: unknown): readonly string[] {
  try {
    read(content);
  } catch (error) {
    if (!(error instanceof AccountFileError)) throw error;
    const [head, ...faults] = error.message.split('\n  ');
    expect(head).toBe(`the file of accounts ${path} can't be used:`);
    return faults;
  }
  return [];
}

test('a token leads to its account, and several may lead to one', () => {
  const { byToken } = read({ tokens: { [TOKEN]: 'shop-1', [OTHER_TOKEN]: 'shop-1' } });
  expect(Object.fromEntries(byToken)).toEqual({ [TOKEN]: 'shop-1', [OTHER_TOKEN]: 'shop-1' });
});

test('an alias leads from the new name of an account to the one that its keys belong to', () => {
  const { byToken } = read({ tokens: { [TOKEN]: 'shop-eu' }, aliases: { 'shop-eu': 'shop-1', 'shop-us': 'shop-1' } });
  expect(byToken.get(TOKEN)).toBe('shop-1');
});

test('a file that every user of the machine can read is told apart from one that only its group can', () => {
  const content = { tokens: { [TOKEN]: 'shop-1' } };
  read(content);
  chmodSync(path, 0o644);
  expect(readAccountFile(path).readableByOthers).toBe(true);
  chmodSync(path, 0o640);
  expect(readAccountFile(path).readableByOthers).toBe(false);
});

test('all faults of a file are told at once, by their place, and none holds a token', () => {
  const faults = faultsOf({
    tokens: { 'too-short': 'shop-1', [TOKEN]: '', [SECRET]: 7, 'not a bearer token, but long': 'shop-2' },
    aliases: { 'shop-eu': 'shop-us', 'shop-us': 'shop-1', 'shop-de': ' shop-1' },
    [SECRET]: 'shop-3',
  });
  expect(faults).toEqual([
    'tokens: number 2 has no name of an account, which is a text without spaces around it',
    'tokens: number 3 has no name of an account, which is a text without spaces around it',
    'aliases: number 3 has no name of an account, which is a text without spaces around it',
    'expected nothing beside "tokens" and "aliases"',
    'aliases: shop-eu leads to shop-us, which is an alias itself',
    'tokens: number 1 is no bearer token of 16 characters or more (RFC 6750)',
    'tokens: number 3 is in the file more than once',
    'tokens: number 4 is no bearer token of 16 characters or more (RFC 6750)',
  ]);
  for (const secret of ['too-short', TOKEN, SECRET, 'not a bearer']) expect(faults.join()).not.toContain(secret);
});

test('a token that is given to two accounts is a fault, since only the last would have it', () => {
  expect(faultsOf(`{"tokens": {"${TOKEN}": "shop-1", "${TOKEN}": "shop-2"}}`)).toEqual([
    'tokens: number 1 is in the file more than once',
  ]);
});

test.each([
  ['{}', 'tokens: expected an object'],
  ['{"tokens": {}}', 'tokens: expected at least one'],
  ['{"tokens": []}', 'tokens: expected an object'],
  [`{"tokens": {"${TOKEN}": "shop-1"}, "aliases": "none"}`, 'aliases: expected an object'],
  ['[]', 'expected a JSON object'],
  ['null', 'expected a JSON object'],
])('the file %s is refused', (content, fault) => {
  expect(faultsOf(content)).toEqual([fault]);
});

test('of a file that is not JSON nothing is quoted', () => {
  expect(faultsOf(`{"tokens": {"${SECRET}" "shop-1"}}`)).toEqual(['it is not JSON']);
});

test('a file that is not there, or is none, is refused with the reason of the system', () => {
  expect(() => readAccountFile(join(directory, 'nowhere'))).toThrow("it can't be read (ENOENT)");
  expect(() => readAccountFile(directory)).toThrow("it can't be read (EISDIR)");
});
