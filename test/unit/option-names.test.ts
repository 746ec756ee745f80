import { faultsOfNames, kindOf } from '../../src/idempotency/option-names';

const KNOWN = new Set(['principal', 'requestId', 'timeoutMs', 'tx']);

test.each([
  ['principle', 'principal'],
  ['principals', 'principal'],
  ['requestid', 'requestId'],
  ['requestID', 'requestId'],
  ['request_id', 'requestId'],
  ['reqestId', 'requestId'],
  ['timeout', 'timeoutMs'],
  ['timeoutMS', 'timeoutMs'],
  ['TX', 'tx'],
])('%s is taken for %s', (name, meant) => {
  expect(faultsOfNames({ [name]: 1, tx: 1 }, KNOWN)).toEqual([`${name}: no such name; was ${meant} meant?`]);
});

test.each(['key', 'id', 'idempotencyKey', 'time', 'requestIdRef'])('%s is taken for none', (name) => {
  const expected = `${name}: no such name; expected one of principal, requestId, timeoutMs, tx`;
  expect(faultsOfNames({ [name]: 1 }, KNOWN)).toEqual([expected]);
});

test('names that there are have no fault, whatever their values are', () => {
  expect(faultsOfNames({ principal: undefined, requestId: null, timeoutMs: 0 }, KNOWN)).toEqual([]);
});

test.each([
  [undefined, 'nothing'],
  [null, 'null'],
  ['s3cret', 'a string'],
  [[], 'an array'],
  [new Map(), 'an object (Map)'],
  [Object.create(null), 'an object (Object)'],
  [Promise.resolve(), 'a promise: is an await missing?'],
])('of %p only the kind is said', (value, kind) => {
  expect(kindOf(value)).toBe(kind);
});
