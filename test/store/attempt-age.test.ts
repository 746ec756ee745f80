import { claimRequest, policyOf } from '../support/claim-requests';
import { claim, openTestStore, type TestStore } from '../support/store';

const HOUR_MS = 3_600_000;

describe('the age that a duplicate is told of a running attempt (design 4.9)', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await openTestStore();
  });

  afterAll(() => opened.close());

  const policy = policyOf('CreatePayment', { leaseMs: 30_000 });

  const ageOf = async (request: ReturnType<typeof claimRequest>): Promise<number> => {
    const outcome = await opened.store.claim(request);
    if (outcome.kind !== 'in_progress') throw new Error(`not in progress but ${outcome.kind}`);
    return outcome.ageMs;
  };

  const makeOld = () => opened.database.rows(`UPDATE idempotency_record SET created_at = now() - interval '1 hour'`);

  it('is that of the record, where the first attempt runs', async () => {
    const request = claimRequest({ policy });
    await claim(opened.store, request);
    await makeOld();

    expect(await ageOf(request)).toBeGreaterThanOrEqual(HOUR_MS);
  });

  it('is its own after a takeover, however old the record is', async () => {
    const request = claimRequest({ policy });
    await claim(opened.store, request);
    await makeOld();
    await opened.endLease(request);
    await claim(opened.store, request);

    const age = await ageOf(request);

    expect(age).toBeGreaterThanOrEqual(0);
    expect(age).toBeLessThan(policy.leaseMs / 2);
  });

  it('is at least what its lease says, as far as that is known', async () => {
    const request = claimRequest({ policy });
    await claim(opened.store, request);
    await makeOld();
    await opened.endLease(request);
    await claim(opened.store, request);
    await opened.database.rows(`UPDATE idempotency_record SET lease_until = now() + interval '10 seconds'`);
    const age = await ageOf(request);
    expect(age).toBeGreaterThanOrEqual(20_000);
    expect(age).toBeLessThan(21_000);

    await opened.database.rows(`UPDATE idempotency_record SET lease_until = now() + interval '1 minute'`);
    expect(await ageOf(request)).toBe(0);
  });
});
