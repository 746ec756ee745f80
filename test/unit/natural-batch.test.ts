import { createNaturalBatch } from '../../src/idempotency/store/natural-batch';

/** A statement that a test answers. */
interface Flight {
  readonly items: readonly number[];
  readonly together: boolean;
  land(): void;
  fail(): void;
}

describe('natural batching (design 4.6)', () => {
  let flights: Flight[];

  beforeEach(() => {
    jest.useFakeTimers();
    flights = [];
  });

  afterEach(() => jest.useRealTimers());

  const flight = (items: readonly number[], together: boolean): Promise<readonly string[]> =>
    new Promise((resolve, reject) => {
      const land = (): void => resolve(items.map((item) => `${item} done`));
      flights.push({ items, together, land, fail: () => reject(new Error(`${items.join(', ')} failed`)) });
    });

  const open = (
    options: { readonly largest?: number; readonly patienceMs?: number; readonly mostFlights?: number } = {},
  ) =>
    createNaturalBatch<number, string>({
      runOne: async (item) => (await flight([item], false))[0] ?? '',
      runAll: (items) => flight(items, true),
      ...options,
    });

  const taken = () => flights.map(({ items }) => items);
  const settle = () => jest.advanceTimersByTimeAsync(0);

  /** Submits an item that goes at once, and then the others behind it. */
  const submitBehind = async <Result>(
    submit: (item: number) => Result,
    items: readonly number[],
  ): Promise<Result[]> => {
    const [first = 0, ...others] = items;
    const results = [submit(first)];
    await settle();
    return [...results, ...others.map(submit)];
  };

  it('lets a single item go at the end of its turn, by itself', async () => {
    const result = open().submit(1);
    await settle();
    expect(flights).toMatchObject([{ items: [1], together: false }]);
    flights[0]?.land();
    expect(await result).toBe('1 done');
  });

  it('sends what queues behind a statement out together in the next, each with its own result', async () => {
    const batch = open();
    const results = await submitBehind((item) => ({ result: batch.submit(item) }), [1, 2, 3, 4]);
    expect(taken()).toEqual([[1]]);
    flights[0]?.land();
    await settle();
    expect(flights).toMatchObject([{}, { items: [2, 3, 4], together: true }]);
    flights[1]?.land();

    expect(await Promise.all(results.map(({ result }) => result))).toEqual(['1 done', '2 done', '3 done', '4 done']);
  });

  it('sends items that come in one turn of the event loop out together, though nothing is out', async () => {
    const batch = open();
    const results = [1, 2, 3].map((item) => batch.submit(item));
    expect(taken()).toEqual([]);
    await settle();
    expect(flights).toMatchObject([{ items: [1, 2, 3], together: true }]);
    flights[0]?.land();

    expect(await Promise.all(results)).toEqual(['1 done', '2 done', '3 done']);
  });

  it('takes no more than the largest batch', async () => {
    const batch = open({ largest: 2 });
    await submitBehind((item) => void batch.submit(item), [1, 2, 3, 4]);
    for (const index of [0, 1]) {
      flights[index]?.land();
      await settle();
    }
    expect(taken()).toEqual([[1], [2, 3], [4]]);
  });

  it('repeats each item of a failed batch by itself, so that one fault is nobody else’s', async () => {
    const batch = open();
    const results = await submitBehind(
      (item) => ({ result: batch.submit(item).catch((error: Error) => error.message) }),
      [1, 2, 3],
    );
    flights[0]?.land();
    await settle();
    flights[1]?.fail();
    await settle();
    expect(flights.slice(2)).toMatchObject([
      { items: [2], together: false },
      { items: [3], together: false },
    ]);
    flights[2]?.fail();
    flights[3]?.land();

    expect(await Promise.all(results.map(({ result }) => result))).toEqual(['1 done', '2 failed', '3 done']);
  });

  it('lets later items go beside a statement that is held up, after its patience and not before', async () => {
    const batch = open({ patienceMs: 20 });
    await submitBehind((item) => void batch.submit(item), [1, 2]);
    const third = batch.submit(3);
    await jest.advanceTimersByTimeAsync(19);
    expect(taken()).toEqual([[1]]);
    await jest.advanceTimersByTimeAsync(1);
    expect(taken()).toEqual([[1], [2, 3]]);
    flights[1]?.land();
    expect(await third).toBe('3 done');

    void batch.submit(4);
    await jest.advanceTimersByTimeAsync(20);
    expect(taken()).toEqual([[1], [2, 3], [4]]);
  });

  it('has no more statements out at once than it may, and goes on when one of them is back', async () => {
    const batch = open({ patienceMs: 20, mostFlights: 3 });
    for (const item of [1, 2, 3, 4, 5]) {
      void batch.submit(item);
      await jest.advanceTimersByTimeAsync(20);
    }
    expect(taken()).toEqual([[1], [2], [3]]);
    flights[1]?.land();
    await settle();
    expect(taken()).toEqual([[1], [2], [3], [4, 5]]);
    await jest.advanceTimersByTimeAsync(100);
    expect(taken()).toHaveLength(4);
  });

  it('waits for nothing once its queue is empty', async () => {
    const batch = open();
    void batch.submit(1);
    await settle();
    flights[0]?.land();
    await settle();
    void batch.submit(2);
    await settle();
    expect(taken()).toEqual([[1], [2]]);
    expect(jest.getTimerCount()).toBe(0);
  });
});
