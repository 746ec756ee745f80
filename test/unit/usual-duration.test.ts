import { createUsualDurations } from '../../src/idempotency/server/usual-duration';

describe('how long the attempts of a method usually take', () => {
  it('is not known before one has ended', () => {
    expect(createUsualDurations().of('/a')).toBeUndefined();
  });

  it('is what the first took, and follows what comes, each method for itself', () => {
    const usual = createUsualDurations();
    usual.observe('/a', 100);
    usual.observe('/b', 5_000);
    expect(usual.of('/a')).toBe(100);
    usual.observe('/a', 200);
    expect(usual.of('/a')).toBeCloseTo(110);
    for (let time = 0; time < 100; time += 1) usual.observe('/a', 300);
    expect(usual.of('/a')).toBeCloseTo(300, 0);
    expect(usual.of('/b')).toBe(5_000);
  });

  it('is not turned over by one that took long', () => {
    const usual = createUsualDurations();
    for (let time = 0; time < 10; time += 1) usual.observe('/a', 100);
    usual.observe('/a', 1_000);
    expect(usual.of('/a')).toBeCloseTo(190);
  });
});
