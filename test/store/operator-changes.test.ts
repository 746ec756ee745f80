import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import type { SeenRecord } from '../../src/idempotency/store/operator';
import {
  expireRefusal,
  expireSeen,
  refuseSeen,
  releaseRefusal,
  releaseSeen,
} from '../../src/idempotency/store/operator-changes';
import { claimRequest, datedKey } from '../support/claim-requests';
import { type OperatedStore, openOperatedStore, stepsOfCharge } from '../support/operated-store';
import { answerOf, claim, complete, held, LIMITS } from '../support/store';

const ADA = { operator: 'ada' };
const REFUSED = new StatusError(status.FAILED_PRECONDITION, 'given up');

let opened: OperatedStore;

beforeAll(async () => (opened = await openOperatedStore()));
afterAll(() => opened.close());
beforeEach(() => opened.clear());

const client = () => opened.connections.store;

describe('releasing', () => {
  it('frees a parked request: the next attempt resumes from what is stored, and attempts count from one', async () => {
    const request = await opened.parked();
    const record = await opened.one(request);
    expect(releaseRefusal(record, { endLease: false })).toBeUndefined();
    expect(await releaseSeen(client(), record, { ...ADA, endLease: false })).toBe('done');
    expect(await opened.one(request)).toMatchObject({ state: 'claimed', attempt: 1, instance: 'operator ada' });
    for (let attempt = 2; attempt <= 10; attempt += 1) {
      const claimed = held(await opened.store.claim(request));
      expect([claimed.attempt, claimed.results]).toEqual([attempt, stepsOfCharge().results]);
      await opened.endLease(request);
    }
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'parked' });
  });

  it('refuses what was half finished for longer than its undated key is kept: the next call would park it again', async () => {
    const request = await opened.parked();
    await opened.change(request, `created_at = now() - ${request.policy.retentionMs + 1} * interval '1 millisecond'`);
    for (const state of ['parked', 'claimed']) {
      await opened.change(request, `state = '${state}', lease_until = now()`);
      expect(releaseRefusal(await opened.one(request), { endLease: false })).toBe('outlived');
    }
    await opened.change(request, `created_at = now()`);
    expect(releaseRefusal(await opened.one(request), { endLease: false })).toBeUndefined();
    // A dated one goes with its day.
    const dated = await opened.halfFinished(datedKey(Date.now()));
    await opened.change(dated, `created_at = now() - interval '99 days'`);
    expect(releaseRefusal(await opened.one(dated), { endLease: false })).toBeUndefined();
  });

  it('frees a parked request for the completer, where the request is kept', async () => {
    const request = await opened.parked();
    const waiting = async () =>
      (
        await opened.store.findHalfFinished({
          ...{ paths: [request.policy.path], shortestWaitMs: 0, longestWaitMs: 0, limit: 10 },
        })
      ).map(({ requestId }) => requestId);
    await opened.change(request, `request = 'as received'`);
    expect(await waiting()).toEqual([]);
    const record = await opened.one(request);
    expect(record.isRequestKept).toBe(true);
    expect(await releaseSeen(client(), record, { ...ADA, endLease: false })).toBe('done');
    expect(await waiting()).toEqual([request.key.text]);
    expect(await opened.store.takeOverHalfFinished(request)).toMatchObject({ kind: 'granted', takeover: true });
  });

  it('takes a claim whose lease is over from its owner, whom neither a renewal nor a completion revives', async () => {
    const request = claimRequest();
    const stale = await claim(opened.store, request);
    await opened.endLease(request);
    const record = await opened.one(request);
    expect(releaseRefusal(record, { endLease: false })).toBeUndefined();
    expect(await releaseSeen(client(), record, { ...ADA, endLease: false })).toBe('done');
    expect(await opened.store.renewIfHeld([{ claim: stale, leaseMs: 60_000 }])).toEqual(['lost']);
    expect(await complete(opened.store, stale, answerOf('late'))).toBe(false);
    expect(held(await opened.store.claim(request)).attempt).toBe(2);
  });

  it('refuses while an attempt runs, unless its lease is to be ended; then that attempt is fenced', async () => {
    const request = claimRequest();
    const running = await claim(opened.store, request);
    const record = await opened.one(request);
    expect(releaseRefusal(record, { endLease: false })).toBe('running');
    expect(await releaseSeen(client(), record, { ...ADA, endLease: false })).toBe('moved');
    expect(releaseRefusal(record, { endLease: true })).toBeUndefined();
    expect(await releaseSeen(client(), record, { ...ADA, endLease: true })).toBe('done');
    expect(await complete(opened.store, running, answerOf('late'))).toBe(false);
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'granted', takeover: true });
  });

  it('is refused for what has its answer, is expired, or has outlived its day', async () => {
    const request = await opened.completed();
    expect(releaseRefusal(await opened.one(request), { endLease: true })).toBe('completed');
    await opened.change(request, `state = 'expired'`);
    expect(releaseRefusal(await opened.one(request), { endLease: true })).toBe('expired');
    const record = await opened.one(await opened.parked());
    expect(releaseRefusal({ ...record, keptAt: new Date() }, { endLease: true })).toBe('kept');
  });

  it('changes nothing where a takeover, a completion or a release came in between', async () => {
    const taken = await opened.halfFinished();
    const seenFirst = await opened.one(taken);
    await claim(opened.store, taken);
    for (const endLease of [false, true]) {
      expect(await releaseSeen(client(), seenFirst, { ...ADA, endLease })).toBe('moved');
    }
    const finished = claimRequest();
    const owner = await claim(opened.store, finished);
    const running = await opened.one(finished);
    await complete(opened.store, owner, answerOf('done'));
    expect(await releaseSeen(client(), running, { ...ADA, endLease: true })).toBe('moved');
    expect(await opened.store.claim(finished)).toMatchObject({ kind: 'completed' });

    const twice = await opened.one(await opened.parked());
    expect(await releaseSeen(client(), twice, { ...ADA, endLease: false })).toBe('done');
    expect(await releaseSeen(client(), twice, { ...ADA, endLease: false })).toBe('moved');
  });
});

describe('expiring', () => {
  it('removes the answer and leaves a tombstone: the key is refused, and nothing runs again', async () => {
    const request = await opened.completed(datedKey(Date.now()));
    const record = await opened.one(request);
    expect(expireRefusal(record)).toBeUndefined();
    expect(await expireSeen(client(), record, ADA)).toBe('done');
    expect(await opened.store.claim(request)).toEqual({ kind: 'expired', tombstone: { resource: 'payments/1' } });
    const [row] = await opened.database.rows('SELECT * FROM idempotency_record');
    expect(row).toMatchObject({
      ...{ state: 'expired', response: null, trailers: null, status_message: null, instance: 'operator ada' },
      ...{ status_code: 0, resource: 'payments/1', answer_kept: false },
    });
    expect(await expireSeen(client(), record, ADA)).toBe('moved');
  });

  it('is refused in every other state', async () => {
    const request = claimRequest();
    await claim(opened.store, request);
    const running = await opened.one(request);
    expect(expireRefusal(running)).toBe('running');
    await opened.endLease(request);
    expect(expireRefusal(await opened.one(request))).toBe('unstarted');
    expect(expireRefusal(await opened.one(await opened.halfFinished()))).toBe('half_finished');
    expect(expireRefusal(await opened.one(await opened.parked()))).toBe('parked');
    expect(expireRefusal({ ...running, state: 'expired' })).toBe('expired');
    expect(expireRefusal({ ...running, state: 'completed', keptAt: new Date() })).toBe('kept');
  });

  it('spares a later completion under the same undated key', async () => {
    const request = await opened.completed();
    const record = await opened.one(request);
    await opened.database.rows('DELETE FROM idempotency_record');
    await complete(opened.store, await claim(opened.store, request), answerOf('a later one'));
    expect(await expireSeen(client(), record, ADA)).toBe('moved');
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'completed' });
  });
});

describe('refusing what nobody runs', () => {
  const refuse = (record: SeenRecord): Promise<boolean> =>
    opened.store.transaction(async (tx) => refuseSeen(tx, record, REFUSED, ADA), LIMITS);

  it('gives a parked or half-finished request its answer, once', async () => {
    for (const request of [await opened.parked(), await opened.halfFinished()]) {
      const record = await opened.one(request);
      expect(await refuse(record)).toBe(true);
      expect(await opened.store.claim(request)).toMatchObject({
        kind: 'completed',
        answer: { code: 9, message: 'given up', response: undefined },
      });
      expect(await refuse(record)).toBe(false);
    }
  });

  it('is not taken for its own completion by an owner who asks what became of that', async () => {
    const request = claimRequest();
    const owner = await claim(opened.store, request);
    await opened.store.recordStepIfHeld(owner, stepsOfCharge());
    await opened.endLease(request);
    expect(await refuse(await opened.one(request))).toBe(true);
    expect(await opened.store.settle(request, owner, 5_000)).toEqual({ kind: 'lost' });
  });

  it('changes nothing while somebody runs it, or once somebody took it over', async () => {
    const request = await opened.halfFinished();
    const record = await opened.one(request);
    const owner = await claim(opened.store, request);
    expect(await refuse(record)).toBe(false);
    expect(await refuse(await opened.one(request))).toBe(false);
    expect(await complete(opened.store, owner, answerOf('paid'))).toBe(true);
  });
});

it('a record that somebody has in hand is not waited for long', async () => {
  const request = await opened.parked();
  const record = await opened.one(request);
  const done = await opened.completed();
  const answered = await opened.one(done);
  const other = await opened.database.pool.connect();
  try {
    await other.query('BEGIN');
    await other.query('UPDATE idempotency_record SET attempt = attempt');
    expect(
      await Promise.all([
        releaseSeen(client(), record, { ...ADA, endLease: false }),
        expireSeen(client(), answered, ADA),
      ]),
    ).toEqual(['in_hand', 'in_hand']);
  } finally {
    await other.query('ROLLBACK');
    other.release();
  }
  expect(await releaseSeen(client(), record, { ...ADA, endLease: false })).toBe('done');
});
