import { derivedKeyOf, derivedRequestId, effectKeyOf } from '../../src/idempotency/derived-request-id';
import { type KeyReading, parseKey, type RequestKey } from '../../src/idempotency/key';
import { newRequestId } from '../../src/idempotency/request-id';

const path = '/payments.v1.PaymentsService/CreatePayment';
const dated = '01890a5d-ac96-774b-bcce-b302099a8057';
const undated = '3f2b8c1e-5a6d-4e7f-8a9b-0c1d2e3f4a5b';
const opaque = 'order:4711:authorize';

function keyOf(text: string): RequestKey {
  const reading = parseKey([text], 'OPAQUE');
  if (reading.kind !== 'key') throw new Error(`${text} is not a key`);
  return reading.key;
}

function derivedOf(scope: string, method: string, key: string, name: string): string {
  return derivedKeyOf({ scope, path: method, key: keyOf(key) }, name);
}

// A card network or a consumer knows a charge by these values, also after a deploy: a change here would charge again what
// is half done. They were made by another program from the description of the hash.
describe('a derived key never changes', () => {
  it.each([
    [dated, 'charge', '01890a5d-ac96-71fe-b6fa-4bc9ee1a4d5b'],
    [dated, 'refund', '01890a5d-ac96-7f9c-9368-c5a35fc061e0'],
    [undated, 'charge', 'e5faa0c8-a94f-8a7b-9545-12f7a181a4d2'],
    [opaque, 'line:2/ship_1', '0b8c2838-17a9-817a-b93a-dc4b8c4b88b8'],
    ['00000000-0001-7000-8000-000000000000', 'charge', '00000000-0001-792d-b094-262a4fc2d037'],
  ])('of the key %s and the name %s', (parent, name, id) => {
    expect(derivedRequestId(parent, name)).toBe(id);
  });

  it.each([
    ['local', path, dated, 'charge', '01890a5d-ac96-7a98-8808-9164a9e46980'],
    ['müşteri/7', path, undated, 'charge', 'b4637af7-db03-876c-81f9-894d3fd51b72'],
    ['local', path, opaque, 'charge', '0f0a4c59-f59f-89e0-b1f0-da50373521df'],
  ])('of scope %s, %s, key %s, name %s', (scope, method, key, name, id) => {
    expect(derivedOf(scope, method, key, name)).toBe(id);
  });
});

describe.each<readonly [string, (key: string) => string]>([
  ['derivedRequestId', (key) => derivedRequestId(key, 'charge')],
  ['derivedKeyOf', (key) => derivedOf('local', path, key, 'charge')],
])('the date of what %s gives', (_, derive) => {
  it('is that of a dated parent, to the millisecond', () => {
    for (const parent of [dated, newRequestId(), 'ffffffff-ffff-7fff-bfff-ffffffffffff']) {
      expect(parseKey([derive(parent)], 'UUID_V7')).toMatchObject({ key: { dated: keyOf(parent).dated } });
    }
  });

  it('is none for an undated parent: a UUID of version 8, whatever its digits', () => {
    const parents = [undated, opaque, ...Array.from({ length: 500 }, (_nothing, index) => `undated-parent-${index}`)];
    for (const parent of parents) {
      const id = derive(parent);
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(parseKey([id], 'UUID')).toMatchObject({ kind: 'key', key: { text: id, dated: undefined } });
    }
  });
});

describe('derived keys', () => {
  it('differ by every part, and by where one part ends and the next begins', () => {
    const ids = [
      dated,
      derivedRequestId(dated, 'charge'),
      derivedRequestId(dated, 'Charge'),
      derivedRequestId(dated, 'charge2'),
      derivedRequestId(derivedRequestId(dated, 'charge'), 'charge'),
      derivedRequestId(`${opaque}a`, 'b'),
      derivedRequestId(opaque, 'ab'),
      derivedOf('local', path, dated, 'charge'),
      derivedOf('loca', `l${path}`, dated, 'charge'),
      derivedOf('other', path, dated, 'charge'),
      derivedOf('local', '/payments.v1.PaymentsService/RefundPayment', dated, 'charge'),
      derivedOf('local', path, newRequestId(), 'charge'),
      derivedOf('local', path, dated, 'refund'),
      derivedOf('local', path, `${opaque}a`, 'b'),
      derivedOf('local', path, opaque, 'ab'),
      derivedOf('', 'local', opaque, 'ab'),
      derivedOf('local', '', opaque, 'ab'),
    ];
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('are unlike for 10,000 names of one parent', () => {
    const ids = Array.from({ length: 10_000 }, (_, index) => derivedRequestId(dated, `line-${index}`));
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('are the same for both spellings of a UUID, as the parent is', () => {
    expect(derivedRequestId(dated.toUpperCase(), 'charge')).toBe(derivedRequestId(dated, 'charge'));
    expect(derivedRequestId(undated.toUpperCase(), 'charge')).toBe(derivedRequestId(undated, 'charge'));
  });
});

describe('what nothing is derived from', () => {
  const badNames = ['', ' ', 'a b', 'a,b', '-a', '.a', 'ödeme', 'a\n', '\u0000', 'a'.repeat(129), undefined, 7, null];

  it.each(badNames)('the name %j', (name) => {
    const expected = 'name: expected 1 to 128 characters';
    expect(() => derivedRequestId(dated, name as string)).toThrow(expected);
    expect(() => derivedOf('local', path, dated, name as string)).toThrow(expected);
  });

  it.each(['a', '7', 'a'.repeat(128), 'Line_2.b:c/d-e'])('but the name %s is fine', (name) => {
    expect(derivedRequestId(dated, name)).toMatch(/^[0-9a-f-]{36}$/);
  });

  const badParents: readonly (readonly [string, unknown])[] = [
    ['no key', undefined],
    ['an empty key', ''],
    ['a short key', 'secret-15-chars'],
    ['a padded key', ` ${dated}`],
    ['two keys', `${dated}, ${dated}`],
    ['the nil UUID', '00000000-0000-0000-0000-000000000000'],
    ['a number', 7],
    ['what reads like a key once it is text', [dated]],
  ];

  it.each(badParents)('%s, which the error does not repeat', (_, parent) => {
    let message = '';
    try {
      derivedRequestId(parent as string, 'charge');
    } catch (error) {
      if (error instanceof TypeError) message = error.message;
    }
    expect(message).toMatch(/^parent: expected /);
    for (const text of ['secret', dated]) expect(message).not.toContain(text);
  });
});

/** Kept honest: the reading that the tests above lean on does tell a date from none. */
it('a key of version 7 would be found out', () => {
  const reading: KeyReading = parseKey([dated], 'UUID');
  expect(reading).toMatchObject({ key: { dated: { atMs: 0x01890a5dac96 } } });
});

describe('the key of an effect for whoever has no attempt of its request', () => {
  it.each([dated, undated, opaque])('is the one that the attempt derives from the key %s', (requestId) => {
    expect(effectKeyOf({ scope: 'shop-1', path, requestId }, 'refund')).toBe(
      derivedOf('shop-1', path, requestId, 'refund'),
    );
    expect(effectKeyOf({ scope: 'shop-1', path, requestId: requestId.toUpperCase() }, 'refund')).toBe(
      derivedOf('shop-1', path, requestId.toUpperCase(), 'refund'),
    );
  });

  it('needs a key and a name, and repeats neither', () => {
    expect(() => effectKeyOf({ scope: 's', path, requestId: 'too short' }, 'refund')).toThrow(
      /^(?!.*too short)parent: /,
    );
    expect(() => effectKeyOf({ scope: 's', path, requestId: dated }, '')).toThrow(/^name: /);
  });
});
