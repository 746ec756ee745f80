import { parseKey, type RequestKey } from '../../src/idempotency/key';
import type { KeyFormat } from '../../src/idempotency/policy';

const v4 = '3f2b8c1e-5a6d-4e7f-8a9b-0c1d2e3f4a5b';
const v7 = '01890a5d-ac96-774b-bcce-b302099a8057';
const v7AtMs = 0x01890a5dac96;
const nil = '00000000-0000-0000-0000-000000000000';
const max = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
const formats: readonly KeyFormat[] = ['UUID', 'UUID_V7', 'OPAQUE'];

function keyOf(value: string, format: KeyFormat): RequestKey {
  const reading = parseKey([value], format);
  if (reading.kind !== 'key') throw new Error(`expected a key, got ${JSON.stringify(reading)}`);
  return reading.key;
}

describe.each(formats)('a key of format %s', (format) => {
  it.each([[[]], [['']]])('is missing when the values are %j: never one key shared by all (case G3)', (values) => {
    expect(parseKey(values, format)).toEqual({ kind: 'missing' });
  });

  it.each([
    ['several values', [v7, v7]],
    ['an empty value beside a good one', ['', v7]],
    ['several values joined on the way', [`${v7}, ${v7}`]],
    ['several opaque values joined without a space', ['opaque-key-number-1,opaque-key-number-2']],
    ['binary metadata', [Buffer.from(v7)]],
    ['empty binary metadata', [Buffer.alloc(0)]],
    ['the nil UUID', [nil]],
    ['the max UUID', [max]],
    ['the max UUID in upper case', [max.toUpperCase()]],
    ['a padded value', [` ${v7}`]],
    ['a trailing line feed', [`${v7}\n`]],
    ['letters outside ASCII', ['kéy-of-sixteen-letters']],
    ['an inner space', ['opaque key of sixteen']],
    ['fifteen characters', ['a'.repeat(15)]],
    ['more than 128 characters', ['a'.repeat(129)]],
  ])('is malformed: %s', (_, values) => {
    const reading = parseKey(values, format);
    expect(reading.kind).toBe('malformed');
    expect(JSON.stringify(reading)).not.toContain(v7);
  });

  it('says so when several values were joined on the way', () => {
    const reading = parseKey([`${v7}, ${v4}`], format);
    expect(reading).toEqual({ kind: 'malformed', description: 'expected one value without a comma' });
  });

  it('is dated when it is a UUIDv7, whatever its case', () => {
    const expected = { text: v7, dated: { atMs: v7AtMs }, bucket: '2023-06-30' };
    expect(keyOf(v7, format)).toEqual(expected);
    expect(keyOf(v7.toUpperCase(), format)).toEqual(expected);
  });
});

describe('a UUID', () => {
  it.each(['UUID', 'OPAQUE'] as const)('of another version is one undated key in both cases (%s)', (format) => {
    const expected = { text: v4, dated: undefined, bucket: '1970-01-01' };
    expect(keyOf(v4, format)).toEqual(expected);
    expect(keyOf(v4.toUpperCase(), format)).toEqual(expected);
  });

  it.each([
    ['version 7 with another variant', '01890a5d-ac96-774b-ccce-b302099a8057'],
    ['variant 10 with another version', '01890a5d-ac96-474b-bcce-b302099a8057'],
  ])('is not dated: %s', (_, value) => {
    expect(keyOf(value, 'UUID').dated).toBeUndefined();
    expect(parseKey([value], 'UUID_V7')).toMatchObject({ kind: 'malformed' });
  });

  it.each([
    ['no hyphens', v7.replaceAll('-', '')],
    ['braces', `{${v7}}`],
    ['a letter that is no hex digit', v7.replace('b', 'g')],
    ['one digit too many', `${v7}0`],
    ['hyphens elsewhere', '01890a5da-c96-774b-bcce-b302099a8057'],
  ])('is malformed with %s', (_, value) => {
    expect(parseKey([value], 'UUID').kind).toBe('malformed');
    expect(parseKey([value], 'UUID_V7').kind).toBe('malformed');
  });
});

describe('an opaque key', () => {
  it.each(['a'.repeat(16), 'a'.repeat(128), '!"#$%&()*+-./:;<=>?@[]^_`{|}~'])('is taken as it is: %s', (value) => {
    expect(keyOf(value, 'OPAQUE')).toEqual({ text: value, dated: undefined, bucket: '1970-01-01' });
  });

  it('keeps its case: only UUIDs have none', () => {
    expect(keyOf('Opaque-Key-Number-1', 'OPAQUE').text).toBe('Opaque-Key-Number-1');
  });
});

describe('the bucket of a dated key', () => {
  it.each([
    ['00000000-0000-7000-8000-000000000000', '1970-01-01'],
    ['00000526-5bff-7000-8000-000000000000', '1970-01-01'],
    ['00000526-5c00-7000-8000-000000000000', '1970-01-02'],
    ['0191b2a3-13ff-7000-8000-000000000000', '2024-09-02'],
    ['e677d21f-dbff-7fff-bfff-ffffffffffff', '9999-12-31'],
    ['e677d21f-dc00-7000-8000-000000000000', '10000-01-01'],
    ['ffffffff-ffff-7fff-bfff-ffffffffffff', '10889-08-02'],
  ])('is the UTC day inside it: %s → %s', (value, bucket) => {
    expect(keyOf(value, 'UUID').bucket).toBe(bucket);
  });
});
