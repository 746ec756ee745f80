import { createWaitingRoom, type WaitEnd, type WaitingRoom } from '../../src/idempotency/server/waiting-room';
import type { Place } from '../../src/idempotency/store/store';

const placeOf = (id: string): Place => ({ bucket: '1970-01-01', id });
const [HERE, THERE] = [placeOf('a'), placeOf('b')];

describe('calls that wait for the attempt of another (design 4.9)', () => {
  /** The places whose attempts run, as the database has them. */
  let running: Set<string>;
  /** Every look at the database, as the ids that were asked for. */
  let looks: string[][];
  let look: (places: readonly Place[]) => Promise<readonly Place[]>;
  let errors: unknown[];
  let room: WaitingRoom;

  beforeEach(() => {
    jest.useFakeTimers();
    running = new Set(['a', 'b']);
    looks = [];
    errors = [];
    look = (places) => Promise.resolve(places.filter(({ id }) => running.has(id)));
    room = open();
  });

  afterEach(() => jest.useRealTimers());

  const open = (mostWaiting = 100): WaitingRoom =>
    createWaitingRoom({
      store: {
        stillRunning: (places) => {
          looks.push(places.map(({ id }) => id));
          return look(places);
        },
      },
      mostWaiting,
      onError: (error) => errors.push(error),
    });

  /** Waits, and notes how that ended. */
  const wait = (place: Place, withinMs = 10_000, signal = new AbortController().signal): { end?: WaitEnd } => {
    const ended: { end?: WaitEnd } = {};
    void room.wait(place, withinMs, signal).then((end) => (ended.end = end));
    return ended;
  };
  const pass = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);

  it('are told at once when an attempt of this process ends, and only those who wait for it', async () => {
    const waits = [wait(HERE), wait(HERE), wait(THERE)];
    room.ended(HERE);
    await pass(0);
    expect(waits.map(({ end }) => end)).toEqual(['moved', 'moved', undefined]);
    expect(looks).toEqual([]);
  });

  it('are told of an attempt elsewhere by one look for all places, each place asked once', async () => {
    const here = Array.from({ length: 50 }, () => wait(HERE));
    const there = Array.from({ length: 50 }, () => wait(THERE));
    running.delete('b');
    await pass(50);
    expect(looks).toEqual([['a', 'b']]);
    expect(there.every(({ end }) => end === 'moved')).toBe(true);
    expect(here.every(({ end }) => end === undefined)).toBe(true);

    await pass(50);
    expect(looks).toEqual([['a', 'b'], ['a']]);
  });

  it('give up when their time is over, not before', async () => {
    const waiting = wait(HERE, 120);
    await pass(119);
    expect(waiting.end).toBeUndefined();
    await pass(1);
    expect(waiting.end).toBe('given_up');
  });

  it.each([0, -5])('do not wait where there is no time (%d ms)', async (withinMs) => {
    const waiting = wait(HERE, withinMs);
    expect(jest.getTimerCount()).toBe(0);
    await pass(0);
    expect(waiting.end).toBe('given_up');
  });

  it('may wait for longer than a timer can be set', async () => {
    const waiting = wait(HERE, 2 ** 40);
    await pass(60_000);
    expect(waiting.end).toBeUndefined();
    room.ended(HERE);
  });

  it('give up when they are cancelled, before or meanwhile, and leave no timer and no look behind', async () => {
    const hangUp = new AbortController();
    const waits = [wait(HERE, 10_000, hangUp.signal), wait(THERE, 10_000, hangUp.signal)];
    expect(jest.getTimerCount()).toBe(3);
    hangUp.abort();
    await pass(0);
    expect(waits.map(({ end }) => end)).toEqual(['given_up', 'given_up']);
    expect(jest.getTimerCount()).toBe(0);

    const late = wait(HERE, 10_000, hangUp.signal);
    await pass(0);
    expect(late.end).toBe('given_up');
    await pass(1_000);
    expect(looks).toEqual([]);
  });

  it('listen no longer to a signal once they have ended', async () => {
    const { signal } = new AbortController();
    const removed = jest.spyOn(signal, 'removeEventListener');
    wait(HERE, 10_000, signal);
    room.ended(HERE);
    await pass(0);
    expect(removed).toHaveBeenCalledTimes(1);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('are bounded in number, and whoever leaves makes room, however they left', async () => {
    room = open(2);
    const hangUp = new AbortController();
    const waits = [wait(HERE, 10, new AbortController().signal), wait(THERE, 10_000, hangUp.signal), wait(HERE)];
    await pass(0);
    expect(waits.map(({ end }) => end)).toEqual([undefined, undefined, 'given_up']);

    await pass(10);
    hangUp.abort();
    const next = [wait(HERE), wait(THERE), wait(HERE)];
    await pass(0);
    expect(next.map(({ end }) => end)).toEqual([undefined, undefined, 'given_up']);

    room.ended(HERE);
    room.ended(THERE);
    const last = [wait(HERE), wait(HERE), wait(HERE)];
    await pass(0);
    expect(last.map(({ end }) => end)).toEqual([undefined, undefined, 'given_up']);
  });

  it('that know better are not told by a look for a while, but by the end of an attempt', async () => {
    const { signal } = new AbortController();
    const waits: { end?: WaitEnd }[] = [{}, {}];
    const [here, there] = waits as [{ end?: WaitEnd }, { end?: WaitEnd }];
    void room.wait(HERE, 10_000, signal, 300).then((end) => (here.end = end));
    void room.wait(THERE, 10_000, signal, 300).then((end) => (there.end = end));
    const other = wait(THERE);
    running.clear();
    await pass(200);
    // Nobody else asks about the one; of the other somebody is told.
    expect(looks).toEqual([['b']]);
    expect([here.end, there.end, other.end]).toEqual([undefined, undefined, 'moved']);

    room.ended(HERE);
    await pass(0);
    expect(here.end).toBe('moved');
    await pass(150);
    expect(there.end).toBe('moved');
  });

  it('go on waiting when the database can not be looked at, which is asked less often then', async () => {
    const broken = new Error('away');
    look = () => Promise.reject(broken);
    const waiting = wait(HERE);
    await pass(50);
    expect(errors).toEqual([broken]);
    await pass(400);
    expect(looks).toHaveLength(1);
    await pass(100);
    expect(looks).toHaveLength(2);
    expect(waiting.end).toBeUndefined();

    look = () => Promise.resolve([]);
    await pass(500);
    expect(waiting.end).toBe('moved');
  });

  it('never look twice at once: a look that takes long holds up only the next one', async () => {
    let answer = (_: readonly Place[]): void => undefined;
    look = () => new Promise((resolve) => (answer = resolve));
    const first = wait(HERE);
    await pass(50);
    const second = wait(THERE);
    await pass(500);
    expect(looks).toEqual([['a']]);

    // Who came after the look is not told by it.
    answer([]);
    await pass(0);
    expect([first.end, second.end]).toEqual(['moved', undefined]);
    await pass(50);
    expect(looks).toEqual([['a'], ['b']]);
  });
});
