import { parseKey } from '../../src/idempotency/key';
import { createRequestIds, newRequestId } from '../../src/idempotency/request-id';

const v7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function atMs(id: string): number {
  const reading = parseKey([id], 'UUID_V7');
  if (reading.kind !== 'key' || reading.key.dated === undefined) throw new Error(`${id} is not a dated key`);
  return reading.key.dated.atMs;
}

function isAscending(ids: readonly string[]): boolean {
  return ids.every((id, index) => index === 0 || id > (ids[index - 1] ?? ''));
}

describe('newRequestId', () => {
  it('gives UUIDv7 keys of now, each greater than the one before', () => {
    const before = Date.now();
    const ids = Array.from({ length: 100 }, () => newRequestId());
    expect(ids.filter((id) => !v7.test(id))).toEqual([]);
    expect(isAscending(ids)).toBe(true);
    expect(atMs(ids[0] ?? '')).toBeGreaterThanOrEqual(before);
    expect(atMs(ids[99] ?? '')).toBeLessThanOrEqual(Date.now() + 1);
  });
});

describe('createRequestIds', () => {
  const ones = (size: number): Uint8Array => new Uint8Array(size).fill(0xff);

  it('lays out time, version, counter, variant and random bits as RFC 9562 says', () => {
    const next = createRequestIds({ nowMs: () => 0x01890a5dac96, random: ones });
    expect(next()).toBe('01890a5d-ac96-77ff-bfff-ffffffffffff');
    expect(next()).toBe('01890a5d-ac96-7800-bfff-ffffffffffff');
  });

  it('stays ascending within one millisecond, past the end of the counter', () => {
    const next = createRequestIds({ nowMs: () => 1_000, random: ones });
    const ids = Array.from({ length: 5_000 }, () => next());
    expect(ids.filter((id) => !v7.test(id))).toEqual([]);
    expect(isAscending(ids)).toBe(true);
    expect(atMs(ids[4_999] ?? '')).toBe(1_002);
  });

  it('stays ascending while the clock is set back a little', () => {
    const times = [50_000, 40_000, 45_000, 50_001];
    const next = createRequestIds({ nowMs: () => times.shift() ?? 0 });
    const ids = [next(), next(), next(), next()];
    expect(isAscending(ids)).toBe(true);
    expect(ids.map(atMs)).toEqual([50_000, 50_000, 50_000, 50_001]);
  });

  it('stays ascending when more keys than fit a millisecond are made just after the clock was set back', () => {
    let now = 50_000;
    const next = createRequestIds({ nowMs: () => now, random: ones });
    const before = Array.from({ length: 3_000 }, () => next());
    now = 41_000;
    const after = Array.from({ length: 10_000 }, () => next());
    now = 60_000;
    const ids = [...before, ...after, next()];
    expect(isAscending(ids)).toBe(true);
    expect(atMs(after[9_999] ?? '')).toBe(50_006);
    expect(atMs(ids[ids.length - 1] ?? '')).toBe(60_000);
  });

  it('follows a clock that is set back far, since keys from the future are refused', () => {
    const times = [50_000, 39_999];
    const next = createRequestIds({ nowMs: () => times.shift() ?? 0 });
    expect([next(), next()].map(atMs)).toEqual([50_000, 39_999]);
  });
});
