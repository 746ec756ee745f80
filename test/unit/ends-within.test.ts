import { setTimeout as delay } from 'node:timers/promises';
import { endsWithin } from '../../src/ends-within';

describe('waiting for work no longer than some time', () => {
  it('says whether it has ended by then', async () => {
    expect(await endsWithin(1_000, Promise.resolve('anything'))).toBe(true);
    expect(await endsWithin(1, new Promise(() => undefined))).toBe(false);
  });

  it('rejects with what the work rejects with in time, and later with nothing', async () => {
    await expect(endsWithin(1_000, Promise.reject(new Error('away')))).rejects.toThrow('away');
    const late = delay(5).then(() => Promise.reject(new Error('too late')));
    expect(await endsWithin(1, late)).toBe(false);
    // An unhandled rejection would fail the run.
    await expect(late).rejects.toThrow('too late');
  });

  it('leaves no timer behind', async () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    await endsWithin(60_000, Promise.resolve());
    await endsWithin(60_000, Promise.reject(new Error('away'))).catch(() => undefined);
    expect(timers()).toBe(before);
  });
});
