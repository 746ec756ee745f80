import { retryHintMs } from '../../src/idempotency/server/usual-duration';

describe('when a duplicate is asked to come back (design 4.9)', () => {
  test.each<[string, { age: number; leaseLeft: number; usual?: number }, number]>([
    ['the usual end, when that is ahead', { age: 200, leaseLeft: 30_000, usual: 1_000 }, 800],
    ['the usual end, at least after the shortest wait', { age: 990, leaseLeft: 30_000, usual: 1_000 }, 50],
    ['the usual end, at most after the longest wait', { age: 0, leaseLeft: 60_000, usual: 40_000 }, 5_000],
    ['half a second after the claim where nothing is known', { age: 0, leaseLeft: 30_000 }, 500],
    ['the rest of half a second where nothing is known', { age: 300, leaseLeft: 30_000 }, 200],
    ['half of its age again, when it runs longer than usual', { age: 2_000, leaseLeft: 30_000, usual: 100 }, 1_000],
    ['half of its age again, when nothing is known', { age: 3_000, leaseLeft: 30_000 }, 1_500],
    ['the longest wait, when it runs much longer', { age: 60_000, leaseLeft: 30_000, usual: 100 }, 5_000],
    ['the end of the lease, when that comes first', { age: 9_000, leaseLeft: 1_000, usual: 20_000 }, 1_000],
    ['the end of the lease, when its half age is later', { age: 29_000, leaseLeft: 700, usual: 100 }, 700],
    ['the shortest wait, when the lease ends at once', { age: 29_990, leaseLeft: 3, usual: 100 }, 50],
    ['soon, when somebody has the row in hand', { age: 0, leaseLeft: 0 }, 500],
    ['soon, whatever is usual, when somebody has the row in hand', { age: 0, leaseLeft: 0, usual: 60_000 }, 500],
    ['whole milliseconds, rounded up', { age: 100.4, leaseLeft: 30_000, usual: 1_000 }, 900],
    ['the usual end, when the clock went back', { age: -20, leaseLeft: 30_000, usual: 100 }, 120],
  ])('is %s', (_, { age, leaseLeft, usual }, hintMs) => {
    expect(retryHintMs(age, leaseLeft, usual)).toBe(hintMs);
  });
});
