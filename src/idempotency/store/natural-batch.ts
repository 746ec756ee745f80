/** Sends work out together that comes together, and never makes any of it wait for more to come. */
export interface NaturalBatch<Item, Result> {
  submit(item: Item): Promise<Result>;
}

/** How a batch is carried out. */
export interface NaturalBatchOptions<Item, Result> {
  /** Carries out one item. */
  readonly runOne: (item: Item) => Promise<Result>;
  /** Carries out several, in one statement: one result per item, in their order. */
  readonly runAll: (items: readonly Item[]) => Promise<readonly Result[]>;
  /** Most items of one batch. Default 64. */
  readonly largest?: number;
  /** How long one batch may hold the others up before they go out beside it, milliseconds. Default 20. */
  readonly patienceMs?: number;
  /** Most batches that are out at once. Default 3. */
  readonly mostFlights?: number;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Natural batching (design 4.6): what queues while one batch is out goes out together in the next. A batch that fails is
 * carried out again item by item, so that the fault of one caller is never another's.
 */
export function createNaturalBatch<Item, Result>(
  options: NaturalBatchOptions<Item, Result>,
): NaturalBatch<Item, Result> {
  const { runOne, runAll, largest = 64, patienceMs = 20, mostFlights = 3 } = options;
  const queue: Waiting<Item, Result>[] = [];
  let flights = 0;
  let patience: NodeJS.Timeout | undefined;
  let boarding: NodeJS.Immediate | undefined;

  const alone = ({ item, resolve, reject }: Waiting<Item, Result>): Promise<void> => runOne(item).then(resolve, reject);

  const together = async (batch: readonly Waiting<Item, Result>[]): Promise<void> => {
    try {
      const results = await runAll(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, index) => resolve(results[index] as Result));
    } catch {
      // Which item was at fault is what each of them finds out by itself.
      await Promise.all(batch.map(alone));
    }
  };

  const takeOff = (): void => {
    clearTimeout(patience);
    patience = undefined;
    boarding = undefined;
    const batch = queue.splice(0, largest);
    const [first] = batch;
    if (first === undefined) return;
    flights += 1;
    void (batch.length === 1 ? alone(first) : together(batch)).then(() => {
      flights -= 1;
      takeOff();
    });
    waitForTheNext();
  };

  const waitForTheNext = (): void => {
    if (queue.length === 0 || flights >= mostFlights || patience !== undefined) return;
    patience = setTimeout(takeOff, patienceMs).unref();
  };

  return {
    submit: (item) =>
      new Promise<Result>((resolve, reject) => {
        queue.push({ item, resolve, reject });
        if (flights > 0) waitForTheNext();
        // At the end of this turn of the event loop: calls that arrived together go out together.
        else boarding ??= setImmediate(takeOff);
      }),
  };
}
