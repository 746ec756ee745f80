import { writeSteps } from '../../src/idempotency/stored-steps';
import { findRecords } from '../../src/idempotency/store/operator';
import { releaseSeen } from '../../src/idempotency/store/operator-changes';
import type { ClaimRequest, HeldClaim } from '../../src/idempotency/store/store';
import { claimRequest } from '../support/claim-requests';
import { claim, openTestStore, type TestStore } from '../support/store';

/** Which attempt stored the first step, after eleven that died before. */
const FIRST = 12;
const results = writeSteps([{ kind: 'effect', name: 'charge', result: undefined }], FIRST);

describe('attempts past the first recovery point (design 3.1, 4.10)', () => {
  let opened: TestStore;
  beforeAll(async () => (opened = await openTestStore()));
  afterAll(() => opened.close());

  /** A request that stands so many attempts past its first step. */
  const at = async (past: number, state = 'claimed'): Promise<[ClaimRequest, HeldClaim]> => {
    const request = claimRequest();
    const held = await claim(opened.store, request);
    const attempt = FIRST - 1 + past;
    await opened.database.rows(
      `UPDATE idempotency_record SET attempt = $2, results = $3, recovery_point = 'charge#begun', state = $4
       WHERE request_id = $1`,
      [request.key.text, attempt, results, state],
    );
    return [request, { ...held, attempt, results }];
  };

  it.each([
    [1, 0],
    [2, 2_000],
    [3, 6_000],
    [9, 3_600_000],
    [10, 0],
  ])('number %s pauses the request for %s ms after an outage', async (past, pauseMs) => {
    const [, held] = await at(past);
    expect(await opened.store.pauseIfHeld(held)).toBe(pauseMs);
  });

  it('that stores the first step itself is number one, whichever it was', async () => {
    const request = claimRequest();
    const held = await claim(opened.store, request);
    await opened.store.recordStepIfHeld(held, { recoveryPoint: 'charge#begun', results });
    expect(await opened.store.pauseIfHeld({ ...held, attempt: FIRST })).toBe(0);
  });

  it('are nine more after a release by hand', async () => {
    const [request] = await at(10, 'parked');
    const found = await findRecords(opened.connections.store, request.key.text);
    if (found.kind !== 'found' || found.records[0] === undefined) throw new Error(found.kind);
    const released = { operator: 'ada', endLease: false };
    expect(await releaseSeen(opened.connections.store, found.records[0], released)).toBe('done');

    const kinds: string[] = [];
    for (let attempt = 1; attempt <= 10; attempt += 1) {
      await opened.endLease(request);
      kinds.push((await opened.store.claim(request)).kind);
    }
    expect(kinds).toEqual([...Array.from({ length: 9 }, () => 'granted'), 'parked']);
  });
});
