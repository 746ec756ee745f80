import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { outcomesOf, type Reconciled, startReconciled } from '../support/reconciliation';

// Three services on one busy database.
jest.setTimeout(60_000);

let used: Reconciled;

beforeAll(async () => (used = await startReconciled()));
afterAll(() => used.stop());

it('a refund that a repair has carried out is not asked for again by its own request, when the network has forgotten the key', async () => {
  const { paymentId } = await used.pay();
  const call = {
    // Undated, and so is the key that is derived from it: the network refuses neither for its age.
    ...{ method: 'RefundPayment', requestId: randomUUID() },
    request: { payment_id: paymentId, amount_minor: '250', reason: 'broken' },
  };
  used.hold((point) => (point === 'after' ? Promise.reject(new Error('the process dies here')) : Promise.resolve()));
  expect((await used.client.call(call)).code).toBe(status.INTERNAL);
  used.hold(() => Promise.resolve());
  const setRecord = (set: string) =>
    used.database.rows(`UPDATE idempotency_record SET ${set} WHERE request_id = $1`, [call.requestId]);
  await setRecord(`state = 'parked'`);
  await used.age();
  expect(outcomesOf(await used.reconcile())).toEqual(['refund_unfinished repaired']);
  expect(await used.refunds()).toEqual({ count: 1, sum: 250 });

  const forgotten = await used.database.rows(
    `DELETE FROM idempotency_record WHERE method IN (SELECT id FROM idempotency_method WHERE path LIKE '/cardnetwork%')
     RETURNING 1`,
  );
  expect(forgotten.length).toBeGreaterThan(0);
  await setRecord(`state = 'claimed', lease_until = now() - interval '1 s'`);
  expect((await used.client.call(call)).code).toBe(status.OK);
  expect(await used.refunds()).toEqual({ count: 1, sum: 250 });
});
