import { status } from '@grpc/grpc-js';
import { type ServerEvent, StatusError } from '../../src/idempotency/index';
import type { AttemptService } from '../support/attempt-service';
import { deferred } from '../support/deferred';
import { goOn, type HalfFinishing, startHalfFinishing } from '../support/half-finished';
import { payInSteps } from '../support/pay-in-steps';
import { until } from '../support/until';

/** Nobody is waited for in these tests. */
const AT_ONCE = { graceMs: 1 };

let service: AttemptService;
let { another, halfFinished, goThrough, muchLater, record, clear } = {} as HalfFinishing;
let looks: number;
/** Holds what a look has found, until a test lets it go. */
let look: Promise<void>;

beforeAll(async () => {
  const started = await startHalfFinishing({
    wrapStore: (store) => ({
      ...store,
      findHalfFinished: async (terms) => {
        const held = look;
        const found = await store.findHalfFinished(terms);
        looks += 1;
        await held;
        return found;
      },
    }),
  });
  ({ service, another, halfFinished, goThrough, muchLater, record, clear } = started);
});
afterAll(() => service.stop());
beforeEach(async () => {
  looks = 0;
  look = goOn();
  await clear();
});

const resumed = (): readonly ServerEvent[] => service.events.filter(({ type }) => type === 'resumed');

describe('a completer is bounded', () => {
  const severalHalfFinished = async (): Promise<void> => {
    for (let count = 1; count <= 5; count += 1) await halfFinished();
    await muchLater();
  };

  it('by its batch, and by what it runs at once', async () => {
    await severalHalfFinished();
    const free = deferred();
    let inside = 0;
    service.handle({
      createPayment: payInSteps(service.database, async (point) => {
        if (point === 'begun') inside += 1;
        if (point === 'begun') await free.promise;
      }),
    });
    const completer = service.idempotency.createCompleter({ batch: 2, mostAtOnce: 3 });
    const first = completer.runOnce();
    const second = completer.runOnce();
    await until('three run', async () => inside === 3);
    expect(await completer.runOnce()).toEqual([]);
    expect(await service.database.count('idempotency_record WHERE attempt = 2')).toBe(3);
    free.resolve();
    expect([await first, await second]).toEqual([['completed', 'completed'], ['completed']]);
    expect(await completer.runOnce()).toEqual(['completed', 'completed']);
  });

  it('by the attempts that its process may run', async () => {
    const narrow = await another({
      server: { mostAttempts: 1 },
    });
    try {
      await severalHalfFinished();
      narrow.handle({ createPayment: payInSteps(service.database, goOn) });
      expect(await narrow.idempotency.createCompleter().runOnce()).toEqual(['completed']);
    } finally {
      await narrow.stop();
    }
  });

  it.each(['everyMs', 'batch', 'mostAtOnce', 'graceMs'])('by numbers: %s', (name) => {
    for (const value of [0, -1, 1.5, NaN]) {
      expect(() => service.idempotency.createCompleter({ [name]: value })).toThrow(
        `createCompleter: ${name}: expected a positive whole number; got ${value}`,
      );
    }
  });
});

describe('a completer that was started', () => {
  it('looks again and again until it is stopped, and then takes up nothing', async () => {
    const completer = service.idempotency.createCompleter({ everyMs: 5, ...AT_ONCE });
    await halfFinished();
    goThrough();
    completer.start();
    await until('it is finished', async () => (await service.database.count('payments')) === 1);
    await halfFinished();
    goThrough();
    await until('it is finished', async () => (await service.database.count('payments')) === 2);

    await completer.stop();
    looks = 0;
    await halfFinished();
    await muchLater();
    goThrough();
    expect(await completer.runOnce()).toEqual([]);
    completer.start();
    expect(looks).toBe(0);
    expect(await service.database.count('payments')).toBe(2);
  });

  it('twice, is started once', async () => {
    const completer = service.idempotency.createCompleter({ everyMs: 60_000 });
    completer.start();
    completer.start();
    await until('it looks', async () => looks > 0);
    // Looks are taken in turn.
    await completer.runOnce();
    expect(looks).toBe(2);
    await completer.stop();
  });

  it('takes up nothing that a look finds when it is stopped', async () => {
    const slow = deferred();
    look = slow.promise;
    await halfFinished();
    await muchLater();
    const completer = service.idempotency.createCompleter();
    completer.start();
    await until('it looks', async () => looks === 1);
    const stopped = completer.stop();
    slow.resolve();
    await stopped;
    expect(await record()).toMatchObject({ attempt: 1 });
  });

  it('says when it can not look, and goes on', async () => {
    let isAway = true;
    const shaky = await another({
      wrapStore: (store) => ({
        ...store,
        countStranded: (...args) => (isAway ? Promise.reject(new Error('away')) : store.countStranded(...args)),
      }),
    });
    const completer = shaky.idempotency.createCompleter({ everyMs: 5, ...AT_ONCE });
    try {
      await halfFinished();
      shaky.handle({ createPayment: payInSteps(service.database, goOn) });
      completer.start();
      await until('it says so', async () => shaky.events.some(({ type }) => type === 'fault'));
      isAway = false;
      await until('it is finished', async () => (await service.database.count('payments')) === 1);
    } finally {
      await completer.stop();
      await shaky.stop();
    }
  });

  it('leaves what runs to the shutdown of the server, which waits for it and then gives it up', async () => {
    await halfFinished();
    await muchLater();
    const [inside, free] = [deferred(), deferred()];
    service.handle({
      createPayment: payInSteps(service.database, async (point) => {
        if (point === 'begun') inside.resolve();
        if (point === 'begun') await free.promise;
      }),
    });
    const completer = service.idempotency.createCompleter({ everyMs: 5 });
    completer.start();
    await inside.promise;
    await completer.stop();
    let isIdle = false;
    const idle = service.idempotency.idle().then(() => (isIdle = true));
    expect(await service.database.count('payments')).toBe(0);
    expect(isIdle).toBe(false);

    await service.idempotency.abandon();
    free.resolve();
    await idle;
    expect(resumed()).toEqual([expect.objectContaining({ result: 'overtaken' })]);
    expect(await record()).toMatchObject({ state: 'claimed' });
    expect(await service.database.count('payments')).toBe(0);
  });
});

describe('requests whose method has no handler here', () => {
  it('are left alone, and told once each time their number changes', async () => {
    await halfFinished();
    goThrough();
    await service.database.rows(
      `UPDATE idempotency_record SET lease_until = now() - interval '3 hours',
         method = (SELECT id FROM idempotency_method WHERE path LIKE '%/UpdatePayment')`,
    );
    const completer = service.idempotency.createCompleter();
    expect(await completer.runOnce()).toEqual([]);
    expect(await completer.runOnce()).toEqual([]);
    const path = '/payments.v1.PaymentsService/UpdatePayment';
    expect(service.events).toEqual([{ type: 'stranded', path, records: 1 }]);
    await service.database.rows('DELETE FROM idempotency_record');
    await completer.runOnce();
    await completer.runOnce();
    expect(service.events.slice(1)).toEqual([{ type: 'stranded', path, records: 0 }]);
  });

  it('or is not resumed, are not even stored', async () => {
    const plain = await another({
      policy: { resume: false },
    });
    try {
      plain.handle({
        createPayment: async (_, attempt) => {
          await attempt.phase('draft', async () => 1);
          throw new StatusError(status.UNAVAILABLE, 'not now');
        },
      });
      await plain.pay();
      expect(await record()).toEqual({ state: 'claimed', attempt: 1, request: null });
      // What was stored while they were resumed waits for its caller.
      await halfFinished();
      await muchLater();
      expect(await plain.idempotency.createCompleter().runOnce()).toEqual([]);
    } finally {
      await plain.stop();
    }
  });
});
