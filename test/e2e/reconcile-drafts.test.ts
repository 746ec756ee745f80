import { status } from '@grpc/grpc-js';
import { newRequestId } from '../../src/idempotency/index';
import { needsSomebody } from '../../src/reconciliation/findings';
import { reportLines } from '../../src/reconciliation/report';
import { LEFT, OF_FAILED, OF_PAID, OF_PARKED, REMOVED } from '../support/abandoned-drafts';
import { holdBeforeNetwork } from '../support/network-hold';
import { paymentRequest } from '../support/payment-requests';
import { outcomesOf } from '../support/reconciliation';
import { useAbandonedDrafts } from '../support/use-abandoned-drafts';

// Three services on one busy database.
jest.setTimeout(60_000);

const { drafts, used } = useAbandonedDrafts();

const recordOf = async ({ requestId }: { readonly requestId: string }) =>
  (
    await used.database.rows<{ state: string; instance: string; request: unknown; results: unknown }>(
      'SELECT state, instance, request, results FROM idempotency_record WHERE request_id = $1',
      [requestId],
    )
  )[0];

describe('a draft that nobody goes on with', () => {
  it.each([
    ['is parked', OF_PARKED, 'parked'],
    ['has lost its lease a day ago', '', 'claimed'],
  ])('is found, removed, and its request refused for good, where that %s', async (_, set, request) => {
    const call = await drafts.abandon();
    if (set !== '') await drafts.setRecord(call, set);
    const other = { ...call, requestId: newRequestId() };
    expect(await used.client.call(other)).toMatchObject({ error: { reason: 'ORDER_PAYMENT_IN_PROGRESS' } });
    await drafts.aDayLater();

    const looked = await drafts.reconcile({ repair: false });
    expect(looked.findings).toMatchObject([
      {
        finding: {
          ...{ kind: 'abandoned_draft', request },
          draft: {
            scope: 'local',
            orderId: call.order,
            amountMinor: 1250n,
            currency: 'EUR',
            requestId: call.requestId,
          },
        },
        outcome: { kind: 'found' },
      },
    ]);
    expect(needsSomebody(looked)).toBe(true);
    expect(reportLines(looked)[1]).toMatch(
      new RegExp(
        `^abandoned_draft  \\S{36}  local/${call.order}  -  +1250 EUR, its request is ${request}  found; --repair`,
      ),
    );
    expect(await drafts.counts()).toEqual(LEFT);

    const repaired = await drafts.reconcile();
    expect(outcomesOf(repaired)).toEqual(['abandoned_draft repaired']);
    expect(outcomesOf(await drafts.reconcile())).toEqual([]);
    expect(await drafts.counts()).toEqual(REMOVED);
    expect(await recordOf(call)).toEqual({
      ...{ state: 'completed', instance: 'operator reconcile', request: null, results: null },
    });

    // Whoever comes back is told so, twice the same, and the card is not charged.
    for (const replayed of [await used.client.call(call), await used.client.call(call)]) {
      expect(replayed).toMatchObject({
        ...{ code: status.FAILED_PRECONDITION, error: { reason: 'PAYMENT_ABANDONED', domain: 'payments.v1' } },
      });
      expect(replayed.trailers.get('idempotent-replayed')).toEqual(['true']);
    }
    expect(await drafts.counts()).toEqual(REMOVED);
    expect((await used.client.call(other)).code).toBe(status.OK);
  });

  it('is removed where nothing is recorded of its request: a late retry starts over, and pays', async () => {
    const call = await drafts.abandon();
    await used.database.rows('DELETE FROM idempotency_record WHERE request_id = $1', [call.requestId]);
    await used.age();
    const report = await drafts.reconcile();
    expect(outcomesOf(report)).toEqual(['abandoned_draft repaired']);
    expect(report.findings[0]?.finding).toMatchObject({ request: 'none' });
    expect((await used.client.call(call)).code).toBe(status.OK);
    expect(await drafts.counts()).toEqual({ drafts: 0, payments: 2, charges: 2, refunds: 0 });
  });

  it('is removed where its request was told that it failed, or has outlived its day, which is left as it is', async () => {
    const failed = await drafts.abandon();
    await drafts.setRecord(failed, OF_FAILED);
    const kept = await drafts.abandon();
    await used.database.rows(
      `INSERT INTO idempotency_record_kept SELECT now(), r.* FROM idempotency_record AS r WHERE request_id = $1`,
      [kept.requestId],
    );
    await used.database.rows('DELETE FROM idempotency_record WHERE request_id = $1', [kept.requestId]);
    await used.age();
    expect(outcomesOf(await drafts.reconcile())).toEqual(['abandoned_draft repaired', 'abandoned_draft repaired']);
    expect(await recordOf(failed)).toMatchObject({
      state: 'completed',
      instance: expect.not.stringMatching(/^op/) as string,
    });
    expect(await used.database.count('idempotency_record_kept')).toBe(1);
    await used.database.rows('TRUNCATE idempotency_record_kept');
    expect(await drafts.counts()).toEqual(REMOVED);
  });

  it('is found by the charge that it has, however long ago that was made', async () => {
    const { requestId } = await used.payHalfWay();
    await drafts.setRecord({ requestId }, OF_PARKED);
    await drafts.aDayLater();
    const report = await drafts.reconcile({ since: new Date(Date.now() - 3_600_000), repair: false });
    expect(outcomesOf(report)).toEqual(['orphaned_charge found']);
    const all = await drafts.reconcile({ repair: false });
    expect(outcomesOf(all)).toEqual(['orphaned_charge found']);
    expect([report.underWay, all.underWay]).toEqual([[], []]);
  });

  it('is removed although its card was declined, or its charge was given back', async () => {
    used.decisions.push('insufficient_funds');
    await drafts.setRecord(await used.payHalfWay(), OF_PARKED);
    const { requestId } = await used.payHalfWay();
    await drafts.setRecord({ requestId }, OF_PARKED);
    const [draft] = await used.database.rows<{ payment_id: string }>(
      'SELECT payment_id::text FROM payment_drafts WHERE request_id = $1',
      [requestId],
    );
    const [charge] = await used.books.inNameOf(draft?.payment_id ?? '');
    if (charge === undefined) throw new Error('no charge');
    await used.books.refund(charge, charge.amountMinor);
    await drafts.aDayLater();
    expect(outcomesOf(await drafts.reconcile())).toEqual(['abandoned_draft repaired', 'abandoned_draft repaired']);
    expect(await drafts.counts()).toEqual({ drafts: 0, payments: 1, charges: 3, refunds: 1 });
  });
});

/** What an attempt commits that was charged. */
const INTO_PAYMENT = `
  WITH draft AS (DELETE FROM payment_drafts RETURNING *)
  INSERT INTO payments (payment_id, scope, order_id, amount_minor, currency, payment_method, state, authorization_id, etag)
  SELECT payment_id, scope, order_id, amount_minor, currency, payment_method, 'authorized', 'new', gen_random_uuid()
  FROM draft`;

describe('a draft is left alone', () => {
  it('while it is young, and while its caller or the completer may come back for it', async () => {
    const call = await drafts.abandon();
    expect(await drafts.reconcile()).toMatchObject({ findings: [], underWay: [] });
    await used.age();
    const [draft] = await used.database.rows<{ id: string }>('SELECT payment_id::text AS id FROM payment_drafts');
    expect(await drafts.reconcile()).toMatchObject({
      findings: [],
      underWay: [{ subject: 'draft', id: draft?.id, why: 'claimed' }],
    });
    expect(await drafts.counts()).toEqual(LEFT);
    expect((await used.client.call(call)).code).toBe(status.OK);
  });

  it('while an attempt runs, however old it is; that then ends as if nothing had looked', async () => {
    const held = holdBeforeNetwork(used);
    const paying = used.client.call({ method: 'CreatePayment', request: paymentRequest(), requestId: newRequestId() });
    await held.asked;
    await drafts.aDayLater();
    await used.database.rows(`UPDATE idempotency_record SET lease_until = now() + interval '20 s'`);
    expect(await drafts.reconcile()).toMatchObject({ findings: [], underWay: [{ subject: 'draft', why: 'claimed' }] });
    held.goOn();
    expect((await paying).code).toBe(status.OK);
  });

  it('where its caller was told that it is paid: for a person', async () => {
    const call = await drafts.abandon();
    await drafts.setRecord(call, OF_PAID);
    await used.age();
    const report = await drafts.reconcile();
    expect(outcomesOf(report)).toEqual(['abandoned_draft left']);
    expect(await drafts.counts()).toEqual(LEFT);
  });

  it('that becomes a payment, or goes, while it is looked at', async () => {
    for (const becomes of ['WITH draft AS (DELETE FROM payment_drafts) SELECT 1', INTO_PAYMENT]) {
      await drafts.setRecord(await drafts.abandon(), OF_PARKED);
      await drafts.aDayLater();
      const inNameOf: typeof used.books.inNameOf = async (paymentId) => {
        const charges = await used.books.inNameOf(paymentId);
        await used.database.rows(becomes);
        return charges;
      };
      expect(await drafts.reconcile({ network: { ...used.books, inNameOf } })).toMatchObject({
        findings: [],
        underWay: [],
      });
    }
  });

  it('of books without a payment in common: one of them is the wrong one', async () => {
    const call = await drafts.abandon();
    await drafts.setRecord(call, OF_PARKED);
    await used.database.rows('DELETE FROM payments');
    await used.database.rows('DELETE FROM card_network_authorizations');
    await drafts.aDayLater();
    expect(outcomesOf(await drafts.reconcile())).toEqual(['abandoned_draft left']);
    expect(await used.database.count('payment_drafts')).toBe(1);
  });
});
