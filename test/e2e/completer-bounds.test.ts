import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import { deferred } from '../support/deferred';
import { goOn } from '../support/half-finished';
import { payInSteps } from '../support/pay-in-steps';
import { until } from '../support/until';
import { AT_ONCE, useHalfFinishing } from '../support/use-half-finishing';

const used = useHalfFinishing();

describe('a completer is bounded', () => {
  const severalHalfFinished = async (): Promise<void> => {
    for (let count = 1; count <= 5; count += 1) await used.halfFinished();
    await used.muchLater();
  };

  it('by its batch, and by what it runs at once', async () => {
    await severalHalfFinished();
    const free = deferred();
    let inside = 0;
    used.service.handle({
      createPayment: payInSteps(used.service.database, async (point) => {
        if (point === 'begun') inside += 1;
        if (point === 'begun') await free.promise;
      }),
    });
    const completer = used.service.idempotency.createCompleter({ batch: 2, mostAtOnce: 3 });
    const first = completer.runOnce();
    const second = completer.runOnce();
    await until('three run', async () => inside === 3);
    expect(await completer.runOnce()).toEqual([]);
    expect(await used.service.database.count('idempotency_record WHERE attempt = 2')).toBe(3);
    free.resolve();
    expect([await first, await second]).toEqual([['completed', 'completed'], ['completed']]);
    expect(await completer.runOnce()).toEqual(['completed', 'completed']);
  });

  it('by the attempts that its process may run', async () => {
    const narrow = await used.another({
      server: { mostAttempts: 1 },
    });
    try {
      await severalHalfFinished();
      narrow.handle({ createPayment: payInSteps(used.service.database, goOn) });
      expect(await narrow.idempotency.createCompleter().runOnce()).toEqual(['completed']);
    } finally {
      await narrow.stop();
    }
  });

  it.each(['everyMs', 'batch', 'mostAtOnce', 'graceMs'])('by numbers: %s', (name) => {
    for (const value of [0, -1, 1.5, NaN]) {
      expect(() => used.service.idempotency.createCompleter({ [name]: value })).toThrow(
        `createCompleter: ${name}: expected a positive whole number, got ${value}`,
      );
    }
  });
});

describe('a completer that was started', () => {
  it('looks again and again until it is stopped, and then takes up nothing', async () => {
    const completer = used.service.idempotency.createCompleter({ everyMs: 5, ...AT_ONCE });
    await used.halfFinished();
    used.goThrough();
    completer.start();
    await until('it is finished', async () => (await used.service.database.count('payments')) === 1);
    await used.halfFinished();
    used.goThrough();
    await until('it is finished', async () => (await used.service.database.count('payments')) === 2);

    await completer.stop();
    used.looks = 0;
    await used.halfFinished();
    await used.muchLater();
    used.goThrough();
    expect(await completer.runOnce()).toEqual([]);
    completer.start();
    expect(used.looks).toBe(0);
    expect(await used.service.database.count('payments')).toBe(2);
  });

  it('twice, is started once', async () => {
    const completer = used.service.idempotency.createCompleter({ everyMs: 60_000 });
    completer.start();
    completer.start();
    await until('it looks', async () => used.looks > 0);
    // Looks are taken in turn.
    await completer.runOnce();
    expect(used.looks).toBe(2);
    await completer.stop();
  });

  it('takes up nothing that a look finds when it is stopped', async () => {
    const slow = deferred();
    used.look = slow.promise;
    await used.halfFinished();
    await used.muchLater();
    const completer = used.service.idempotency.createCompleter();
    completer.start();
    await until('it looks', async () => used.looks === 1);
    const stopped = completer.stop();
    slow.resolve();
    await stopped;
    expect(await used.record()).toMatchObject({ attempt: 1 });
  });

  it('says when it can not look, and goes on', async () => {
    let isAway = true;
    const shaky = await used.another({
      wrapStore: (store) => ({
        ...store,
        countStranded: (...args) => (isAway ? Promise.reject(new Error('away')) : store.countStranded(...args)),
      }),
    });
    const completer = shaky.idempotency.createCompleter({ everyMs: 5, ...AT_ONCE });
    try {
      await used.halfFinished();
      shaky.handle({ createPayment: payInSteps(used.service.database, goOn) });
      completer.start();
      await until('it says so', async () => shaky.events.some(({ type }) => type === 'fault'));
      isAway = false;
      await until('it is finished', async () => (await used.service.database.count('payments')) === 1);
    } finally {
      await completer.stop();
      await shaky.stop();
    }
  });

  it('leaves what runs to the shutdown of the server, which waits for it and then gives it up', async () => {
    await used.halfFinished();
    await used.muchLater();
    const [inside, free] = [deferred(), deferred()];
    used.service.handle({
      createPayment: payInSteps(used.service.database, async (point) => {
        if (point === 'begun') inside.resolve();
        if (point === 'begun') await free.promise;
      }),
    });
    const completer = used.service.idempotency.createCompleter({ everyMs: 5 });
    completer.start();
    await inside.promise;
    await completer.stop();
    let isIdle = false;
    const idle = used.service.idempotency.idle().then(() => (isIdle = true));
    expect(await used.service.database.count('payments')).toBe(0);
    expect(isIdle).toBe(false);

    await used.service.idempotency.abandon();
    free.resolve();
    await idle;
    expect(used.resumed()).toEqual([expect.objectContaining({ result: 'overtaken' })]);
    expect(await used.record()).toMatchObject({ state: 'claimed' });
    expect(await used.service.database.count('payments')).toBe(0);
  });
});

describe('requests whose method has no handler here', () => {
  it('are left alone, and told once each time their number changes', async () => {
    await used.halfFinished();
    used.goThrough();
    await used.service.database.rows(
      `UPDATE idempotency_record SET lease_until = now() - interval '3 hours',
         method = (SELECT id FROM idempotency_method WHERE path LIKE '%/UpdatePayment')`,
    );
    const completer = used.service.idempotency.createCompleter();
    expect(await completer.runOnce()).toEqual([]);
    expect(await completer.runOnce()).toEqual([]);
    const path = '/payments.v1.PaymentsService/UpdatePayment';
    expect(used.service.events).toEqual([{ type: 'stranded', path, records: 1 }]);
    await used.service.database.rows('DELETE FROM idempotency_record');
    await completer.runOnce();
    await completer.runOnce();
    expect(used.service.events.slice(1)).toEqual([{ type: 'stranded', path, records: 0 }]);
  });

  it('or is not resumed, are not even stored', async () => {
    const plain = await used.another({
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
      expect(await used.record()).toEqual({ state: 'claimed', attempt: 1, request: null });
      // What was stored while they were resumed waits for its caller.
      await used.halfFinished();
      await used.muchLater();
      expect(await plain.idempotency.createCompleter().runOnce()).toEqual([]);
    } finally {
      await plain.stop();
    }
  });
});
