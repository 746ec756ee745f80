import type { PoolClient } from 'pg';
import type { ClaimRequest } from '../../src/idempotency/store/store';
import { claimRequest } from '../support/claim-requests';
import * as operator from '../support/operator-statements';
import { exploreSchedules, type Program, type Schedule } from '../support/scheduler';
import { answerBy, calling, completing, doing, looking, settling, takingOver } from '../support/scheduler-programs';
import * as statements from '../support/scheduler-statements';
import { claim, idOf, openTestStore, type TestStore } from '../support/store';

/** A key with an owner, or a parked one. */
interface Owned {
  readonly request: ClaimRequest;
  readonly token: string;
}

jest.setTimeout(90_000);

describe('what an operator does while attempts run, in every order (design 4.5, 4.7)', () => {
  let opened: TestStore;
  const connections: PoolClient[] = [];

  beforeAll(async () => {
    opened = await openTestStore();
    await opened.database.rows('CREATE TABLE effect (request_id text, answer text)');
    for (let index = 0; index < 3; index += 1) connections.push(await opened.database.pool.connect());
  });

  afterAll(async () => {
    for (const client of connections) client.release();
    await opened.close();
  });

  const explore = async (
    state: string,
    programs: (owned: Owned) => readonly Program[],
    check: (books: {
      readonly state: string | undefined;
      readonly effects: readonly string[];
      readonly outcomes: readonly string[];
    }) => unknown,
  ): Promise<number> => {
    let current: Owned = { request: claimRequest(), token: '' };
    return exploreSchedules({
      ...{ pool: opened.database.pool, connections },
      start: async () => {
        const request = claimRequest();
        const { ownerToken } = await claim(opened.store, request);
        current = { request, token: ownerToken };
        await opened.database.rows(`UPDATE idempotency_record SET ${state} WHERE id = $1`, [idOf(request)]);
        return programs(current);
      },
      check: async ({ order, outcomes }: Schedule) => {
        const [record] = await opened.database.rows<{ state: string; response: Buffer | null }>(
          'SELECT state, response FROM idempotency_record WHERE id = $1',
          [idOf(current.request)],
        );
        const effects = (
          await opened.database.rows<{ answer: string }>('SELECT answer FROM effect WHERE request_id = $1', [
            current.request.key.text,
          ])
        ).map(({ answer }) => answer);
        const verdict = check({ state: record?.state, effects, outcomes });
        expect({ order, outcomes, effects, state: record?.state, verdict }).toMatchObject({ order, verdict: true });
        // Whatever happened: at most one effect, and where it is recorded, that one is the answer.
        expect(effects.length).toBeLessThanOrEqual(1);
        if (record?.state === 'completed' && record.response !== null)
          expect([record.response.toString()]).toEqual(effects);
      },
    });
  };

  it('a lease that runs is ended while its owner completes and another call waits: one effect, by one of them', async () => {
    const orders = await explore(
      'attempt = attempt',
      ({ request, token }) => [
        completing(request, token, 'BEGIN', 'coarse'),
        doing(operator.endRunningLease(request, token)),
        calling(request, 'coarse'),
      ],
      ({ effects, outcomes: [owner = '', ended] }) =>
        // Taken away, it completes nothing; not taken away, it had completed.
        ended === '1' ? !owner.startsWith(answerBy('')) : effects[0] === owner,
    );
    expect(orders).toBeGreaterThan(20);
  });

  it('a claim without a lease is taken away while its owner completes and another call takes it over', async () => {
    const orders = await explore(
      `lease_until = now() - interval '1 second'`,
      ({ request, token }) => [
        completing(request, token, 'BEGIN', 'coarse'),
        doing(operator.takeClaimAway(request, token)),
        takingOver(request, token, 'coarse'),
      ],
      ({ effects, outcomes: [owner = '', taken, other = ''] }) => {
        const byOwner = owner.startsWith(answerBy(''));
        return taken === '1' ? !byOwner && effects.length === 0 && other === 'claimed' : effects.length === 1;
      },
    );
    expect(orders).toBeGreaterThan(20);
  });

  it('a parked request is freed twice while a call with its key comes: that one runs it, or is told that it is parked', async () => {
    const orders = await explore(
      `state = 'parked', recovery_point = 'draft', lease_until = now() - interval '1 second'`,
      ({ request, token }) => [
        doing(operator.freeParked(request, token)),
        doing(operator.freeParked(request, token)),
        calling(request, 'coarse'),
      ],
      ({ state, effects, outcomes: [one, other, call] }) =>
        Number(one) + Number(other) === 1 &&
        (call === 'parked' ? state === 'claimed' && effects.length === 0 : effects[0] === call),
    );
    expect(orders).toBeGreaterThan(5);
  });

  it('an answer is removed while its owner asks what became of its commit and a call replays it', async () => {
    const orders = await explore(
      `state = 'completed', completed_at = now(), status_code = 0, response = NULL`,
      ({ request, token }) => [doing(operator.expire(request, token)), settling(request, token), looking(request)],
      ({ state, outcomes: [expired, settled] }) =>
        state === 'expired' && expired === '1' && (settled === 'committed' || settled === 'lost'),
    );
    expect(orders).toBeGreaterThan(5);
  });

  it('a completion and a tombstone of what was seen before it: the tombstone is of an answer or not at all', async () => {
    const orders = await explore(
      'attempt = attempt',
      ({ request, token }) => [completing(request, token), doing(operator.expire(request, token))],
      ({ state, effects, outcomes: [, expired] }) =>
        effects.length === 1 && state === (expired === '1' ? 'expired' : 'completed'),
    );
    expect(orders).toBeGreaterThan(4);
  });

  it('a half-finished request is refused for good while its owner completes and another call takes it over', async () => {
    const orders = await explore(
      `recovery_point = 'draft', lease_until = now() - interval '1 second'`,
      ({ request, token }) => [
        completing(request, token, 'BEGIN', 'coarse'),
        doing(operator.refuse(request, token)),
        takingOver(request, token, 'coarse'),
      ],
      ({ effects, outcomes: [, refused] }) => effects.length === (refused === '1' ? 0 : 1),
    );
    expect(orders).toBeGreaterThan(20);
  });

  it('a parked request is refused and freed at the same time: one of the two', async () => {
    const orders = await explore(
      `state = 'parked', recovery_point = 'draft'`,
      ({ request, token }) => [
        doing(operator.refuse(request, token)),
        doing(operator.freeParked(request, token)),
        doing(statements.renew(request, token)),
      ],
      ({ state, outcomes: [refused, freed, renewed] }) =>
        Number(refused) + Number(freed) === 1 &&
        state === (refused === '1' ? 'completed' : 'claimed') &&
        renewed === '0',
    );
    expect(orders).toBeGreaterThan(3);
  });
});
