import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { type RecordState, type ServerEvent, StatusError } from '../../src/idempotency/index';
import { payAndComplete } from '../support/attempt-service';
import { datedKey } from '../support/claim-requests';
import { deferred } from '../support/deferred';
import { type HalfFinishing, REQUEST, startHalfFinishing } from '../support/half-finished';
import { until } from '../support/until';

type CallEvent = Extract<ServerEvent, { type: 'call' }>;

describe('where its record stands, and what it is about, in the line of a call (design 3.5)', () => {
  let used: HalfFinishing;
  let isStoreAway = false;

  beforeAll(async () => {
    const unlessAway = <Answer>(ask: () => Promise<Answer>): Promise<Answer> =>
      isStoreAway ? Promise.reject(new Error('away')) : ask();
    used = await startHalfFinishing({
      wrapStore: (store) => ({ ...store, pauseIfHeld: (claim) => unlessAway(() => store.pauseIfHeld(claim)) }),
    });
  });
  beforeEach(async () => {
    isStoreAway = false;
    await used.clear();
  });
  afterAll(() => used.service.stop());

  const pay = (requestId: string) => used.service.pay({ request: REQUEST, requestId });

  const change = (set: string) => used.service.database.rows(`UPDATE idempotency_record SET ${set}`);

  const lines = (): readonly CallEvent[] => used.service.events.filter((event) => event.type === 'call');

  /** The state of the record that the last line tells of, and what it has as the resource. */
  const toldLast = (): readonly [RecordState | undefined, string | undefined] => {
    const last = lines().at(-1);
    if (last === undefined) throw new Error('no line');
    return [last.recordState, last.published['resource']];
  };

  /** Pays and publishes a resource, as services do. */
  const payAndPublish = () =>
    used.service.handle({
      createPayment: (request, attempt) => {
        attempt.publish({ resource: 'payments/1', state: 'authorized' });
        return payAndComplete(request, attempt);
      },
    });

  it('is completed with a first answer and with its replay, which tells of the same resource', async () => {
    payAndPublish();
    const requestId = randomUUID();
    await pay(requestId);
    expect(toldLast()).toEqual(['completed', 'payments/1']);
    await pay(requestId);
    expect(lines().map(({ outcome }) => outcome)).toEqual(['claimed', 'replayed']);
    expect(toldLast()).toEqual(['completed', 'payments/1']);
    // What a handler published is the handler's.
    expect(lines()[1]?.published).toEqual({ resource: 'payments/1' });
  });

  it('is completed with the replay of an answer that was not kept', async () => {
    payAndPublish();
    const requestId = randomUUID();
    await pay(requestId);
    await change('answer_kept = false, response = NULL');
    expect((await pay(requestId)).error.reason).toBe('RESPONSE_NOT_RECORDED');
    expect(toldLast()).toEqual(['completed', 'payments/1']);
  });

  it('is claimed while an attempt runs, whose resource a duplicate tells of', async () => {
    const [published, proceed] = [deferred(), deferred()];
    used.service.handle({
      createPayment: async (request, attempt) => {
        attempt.publish({ resource: 'payments/1' });
        published.resolve();
        await proceed.promise;
        return payAndComplete(request, attempt);
      },
    });
    const requestId = randomUUID();
    const first = pay(requestId);
    await published.promise;
    const stored = `idempotency_record WHERE resource = 'payments/1'`;
    await until('it is stored', async () => (await used.service.database.count(stored)) === 1);
    expect((await pay(requestId)).error.reason).toBe('REQUEST_IN_PROGRESS');
    expect(lines().at(-1)?.outcome).toBe('in_progress');
    expect(toldLast()).toEqual(['claimed', 'payments/1']);
    proceed.resolve();
    await first;
  });

  it('is not known while somebody has the row in hand: it may be answered next', async () => {
    const requestId = await used.halfFinished();
    await used.muchLater();
    const other = await used.service.database.pool.connect();
    try {
      await other.query('BEGIN');
      await other.query('SELECT FROM idempotency_record FOR UPDATE');
      expect((await pay(requestId)).error.reason).toBe('REQUEST_IN_PROGRESS');
    } finally {
      await other.query('ROLLBACK');
      other.release();
    }
    expect(lines().at(-1)?.outcome).toBe('in_progress');
    expect(toldLast()).toEqual([undefined, undefined]);
  });

  it('is not known where the store could not be told of a failure', async () => {
    isStoreAway = true;
    await used.halfFinished();
    expect(lines().at(-1)?.code).toBe(status.UNAVAILABLE);
    expect(toldLast()).toEqual([undefined, undefined]);
  });

  it('is parked, and the resource is for the log alone', async () => {
    const requestId = await used.halfFinished();
    await change(`state = 'parked', resource = 'payments/1'`);
    const { error } = await pay(requestId);
    expect(error.reason).toBe('REQUEST_PARKED');
    expect(error.metadata.size).toBe(0);
    expect(toldLast()).toEqual(['parked', 'payments/1']);
  });

  it('is parked with the call that finds it tried too often', async () => {
    const requestId = await used.halfFinished();
    await change(`attempt = 10, resource = 'payments/1', lease_until = now()`);
    expect((await pay(requestId)).error.reason).toBe('REQUEST_PARKED');
    expect(toldLast()).toEqual(['parked', 'payments/1']);
  });

  it('is expired where an operator removed the answer, and nothing where there is no record', async () => {
    payAndPublish();
    const requestId = randomUUID();
    await pay(requestId);
    await change(`state = 'expired', answer_kept = false, response = NULL`);
    expect((await pay(requestId)).error.reason).toBe('REQUEST_ID_EXPIRED');
    expect(toldLast()).toEqual(['expired', 'payments/1']);
    expect((await pay(datedKey(Date.now() - 90 * 86_400_000))).error.reason).toBe('REQUEST_ID_EXPIRED');
    expect(lines().at(-1)?.outcome).toBe('expired_key');
    expect(toldLast()).toEqual([undefined, undefined]);
  });

  it('is claimed after a failure half way, and nothing after one that gave the key back', async () => {
    await used.halfFinished();
    expect(lines().at(-1)?.code).toBe(status.UNAVAILABLE);
    expect(toldLast()[0]).toBe('claimed');
    used.service.handle({ createPayment: () => Promise.reject(new StatusError(status.NOT_FOUND, 'no such card')) });
    await pay(randomUUID());
    expect(lines().at(-1)?.code).toBe(status.NOT_FOUND);
    expect(toldLast()).toEqual([undefined, undefined]);
  });

  it('is nothing with a request of other content: it is not this one that was recorded', async () => {
    payAndPublish();
    const requestId = randomUUID();
    await pay(requestId);
    await used.service.pay({ request: { ...REQUEST, order_id: 'order-2' }, requestId });
    expect(lines().at(-1)?.outcome).toBe('mismatch');
    expect(toldLast()).toEqual([undefined, undefined]);
  });

  it.each([
    ['runs elsewhere', 'attempt = 2', 'claimed'],
    ['was answered', `state = 'completed', completed_at = now(), status_code = 0, response = '\\x'`, 'completed'],
    ['was parked', `state = 'parked'`, 'parked'],
    ['was expired', `state = 'expired'`, 'expired'],
  ] as const)('is what became of it where the claim was lost to one that %s', async (_, set, state) => {
    used.service.handle({
      createPayment: async (request, attempt) => {
        await change(`owner_token = gen_random_uuid(), resource = 'payments/2', ${set}`);
        return payAndComplete(request, attempt);
      },
    });
    await pay(randomUUID());
    expect(lines()).toHaveLength(1);
    expect(toldLast()).toEqual([state, 'payments/2']);
  });

  it('is nothing with a call without a record', async () => {
    used.service.handle({ createPayment: payAndComplete });
    await used.service.pay({ request: REQUEST, requestId: undefined });
    expect(lines().map(({ outcome }) => outcome)).toEqual(['missing_key']);
    expect(toldLast()).toEqual([undefined, undefined]);
  });
});
