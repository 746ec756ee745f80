import { parseKey, type RequestKey } from '../../src/idempotency/key';
import { recordId } from '../../src/idempotency/record-id';

const path = '/payments.v1.PaymentsService/CreatePayment';
const dated = '01890a5d-ac96-774b-bcce-b302099a8057';
const undated = '3f2b8c1e-5a6d-4e7f-8a9b-0c1d2e3f4a5b';

function keyOf(value: string): RequestKey {
  const reading = parseKey([value], 'OPAQUE');
  if (reading.kind !== 'key') throw new Error(`${value} is not a key`);
  return reading.key;
}

function idOf(scope: string, method: string, key: string): string {
  return recordId({ scope, path: method, key: keyOf(key) });
}

// Records are found by these values. A change here would run every recorded request again.
describe('the id of a record never changes', () => {
  it.each([
    ['local', path, dated, '01890a5d-ac96-40b0-6054-c0c26e728678'],
    ['local', path, undated, '31f3de65-44c7-0fcd-40d1-0855df4a3fcd'],
    ['müşteri/7', path, 'order:4711:authorize', 'f3e07455-76ae-0852-2d27-664d588e640c'],
    ['', path, '00000000-0001-7000-8000-000000000000', '00000000-0001-e653-fab8-aa4c4fdd17b1'],
  ])('scope %j, %s, key %s', (scope, method, key, id) => {
    expect(idOf(scope, method, key)).toBe(id);
  });
});

describe('the id of a record', () => {
  it.each([dated, undated])('begins with 48 bits of the key %s alone, so that it is found without its scope', (key) => {
    const ids = [
      idOf('a', path, key),
      idOf('b', path, key),
      idOf('a', '/payments.v1.PaymentsService/RefundPayment', key),
    ];
    expect(new Set(ids.map((id) => id.slice(0, 13))).size).toBe(1);
    expect(new Set(ids.map((id) => id.slice(14))).size).toBe(3);
  });

  it('is the same in whatever case the UUID was sent', () => {
    expect(idOf('local', path, dated.toUpperCase())).toBe(idOf('local', path, dated));
  });

  it('tells apart what would be equal when run together', () => {
    const key = 'cccccccccccccccc';
    const ids = [
      idOf('ab', 'c', key),
      idOf('a', 'bc', key),
      idOf('abc', '', key),
      idOf('', 'abc', key),
      idOf('ab', '', `c${key}`),
    ];
    expect(new Set(ids).size).toBe(ids.length);
  });
});
