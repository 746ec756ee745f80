import { status } from '@grpc/grpc-js';
import { newRequestId } from '../../src/idempotency/index';
import { type AbandonedCall, LEFT, OF_PARKED, REMOVED } from '../support/abandoned-drafts';
import { deferred } from '../support/deferred';
import { holdBeforeNetwork } from '../support/network-hold';
import { paymentRequest } from '../support/payment-requests';
import { outcomesOf } from '../support/reconciliation';
import { useAbandonedDrafts } from '../support/use-abandoned-drafts';

// Three services on one busy database.
jest.setTimeout(60_000);

const { drafts, used } = useAbandonedDrafts();

describe('between the look and the repair of a draft', () => {
  let compared = false;
  beforeEach(() => (compared = false));

  const found = async () => {
    const call = await drafts.abandon();
    await drafts.setRecord(call, OF_PARKED);
    await drafts.aDayLater();
    return call;
  };
  /** Released by hand, and sent again by its caller: an attempt runs. */
  const resumed = async (call: AbandonedCall) => {
    const held = holdBeforeNetwork(used);
    await drafts.setRecord(
      call,
      `state = 'claimed', attempt = 1, lease_until = now(), owner_token = gen_random_uuid()`,
    );
    const paying = used.client.call(call);
    await held.asked;
    return { paying, goOn: held.goOn };
  };

  it('its request runs again: the draft stays, and the payment is made', async () => {
    const call = await found();
    let attempt: Awaited<ReturnType<typeof resumed>> | undefined;
    const report = await drafts.reconcile({
      recordOf: async (request) => {
        if (compared) attempt ??= await resumed(call);
        return used.recordOf(request);
      },
      onEvent: () => (compared = true),
    });
    expect(outcomesOf(report)).toEqual(['abandoned_draft left']);
    attempt?.goOn();
    expect((await attempt?.paying)?.code).toBe(status.OK);
  });

  it('its request is released by hand: the draft stays for whoever comes back', async () => {
    const call = await found();
    const report = await drafts.reconcile({
      onEvent: () => (compared = true),
      recordOf: async (request) => {
        if (compared) await drafts.setRecord(call, `state = 'claimed', attempt = 1, lease_until = now()`);
        return used.recordOf(request);
      },
    });
    expect(report.findings).toMatchObject([{ outcome: { kind: 'left', why: 'its request is under way again' } }]);
    expect((await used.client.call(call)).code).toBe(status.OK);
  });

  it('its request is taken over after the record was read: nothing of the repair stays', async () => {
    const call = await found();
    let attempt: Awaited<ReturnType<typeof resumed>> | undefined;
    const inNameOf: typeof used.books.inNameOf = async (paymentId) => {
      const charges = await used.books.inNameOf(paymentId);
      if (compared) attempt ??= await resumed(call);
      return charges;
    };
    const report = await drafts.reconcile({ network: { ...used.books, inNameOf }, onEvent: () => (compared = true) });
    expect(report.findings).toMatchObject([{ outcome: { kind: 'left', why: 'its request is under way again' } }]);
    expect(await drafts.counts()).toEqual(LEFT);
    attempt?.goOn();
    expect((await attempt?.paying)?.code).toBe(status.OK);
    expect(await drafts.counts()).toEqual({ drafts: 0, payments: 2, charges: 2, refunds: 0 });
  });

  it('its card is charged by an attempt that was thought dead: the next run goes about that charge', async () => {
    const call = await found();
    await drafts.setRecord(call, OF_PARKED);
    const [draft] = await used.database.rows<{ id: string }>('SELECT payment_id::text AS id FROM payment_drafts');
    const report = await drafts.reconcile({
      onEvent: () => (compared = true),
      recordOf: async (request) => {
        if (compared) {
          await used.database.rows(
            `INSERT INTO card_network_authorizations (authorization_id, scope, request_id, reference, amount_minor, currency,
                                                      payment_method, state, created_at)
             SELECT gen_random_uuid(), scope, $2, $1, amount_minor, currency, payment_method, state, created_at
             FROM card_network_authorizations`,
            [draft?.id, newRequestId()],
          );
        }
        return used.recordOf(request);
      },
    });
    expect(outcomesOf(report)).toEqual(['abandoned_draft left']);
    expect(outcomesOf(await drafts.reconcile())).toEqual(['orphaned_charge repaired']);
    expect(await drafts.counts()).toEqual({ drafts: 0, payments: 2, charges: 2, refunds: 0 });
  });

  it('somebody else removed it: nothing is done', async () => {
    await found();
    const inNameOf: typeof used.books.inNameOf = async (paymentId) => {
      const charges = await used.books.inNameOf(paymentId);
      if (compared) await used.database.rows('DELETE FROM payment_drafts');
      return charges;
    };
    const report = await drafts.reconcile({ network: { ...used.books, inNameOf }, onEvent: () => (compared = true) });
    expect(outcomesOf(report)).toEqual(['abandoned_draft gone']);
  });

  it('two repair it at once: once', async () => {
    const call = await found();
    const reports = await Promise.all([drafts.reconcile(), drafts.reconcile(), drafts.reconcile()]);
    expect(reports.flatMap(outcomesOf).filter((outcome) => outcome.endsWith('repaired'))).toHaveLength(1);
    expect(await drafts.counts()).toEqual(REMOVED);
    expect(await used.client.call(call)).toMatchObject({ error: { reason: 'PAYMENT_ABANDONED' } });
  });
});

it('an attempt that sleeps through the repair of its draft is fenced, and what it charged is given back', async () => {
  const sleeping = deferred();
  const wake = deferred();
  used.hold(async (point, time) => {
    if (point !== 'before' || time !== used.keysAsked.length) return;
    sleeping.resolve();
    await wake.promise;
  });
  const call = { method: 'CreatePayment', request: paymentRequest(), requestId: newRequestId() };
  const stale = used.client.call(call);
  await sleeping.promise;
  used.hold(() => Promise.resolve());
  await drafts.setRecord(call, `state = 'parked', lease_until = now(), owner_token = gen_random_uuid()`);
  await drafts.aDayLater();
  expect(outcomesOf(await drafts.reconcile())).toEqual(['abandoned_draft repaired']);
  wake.resolve();
  // It is told what is recorded, not what it did.
  expect(await stale).toMatchObject({ error: { reason: 'PAYMENT_ABANDONED' } });
  expect(await drafts.counts()).toEqual({ drafts: 0, payments: 1, charges: 2, refunds: 0 });
  await used.age();
  expect(outcomesOf(await drafts.reconcile())).toEqual(['orphaned_charge repaired']);
  expect(await drafts.counts()).toEqual({ drafts: 0, payments: 1, charges: 2, refunds: 1 });
});
