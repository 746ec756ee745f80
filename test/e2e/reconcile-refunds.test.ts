import { status } from '@grpc/grpc-js';
import { connect } from '../../src/database/connect';
import { newRequestId } from '../../src/idempotency/index';
import { createRelay } from '../../src/outbox/relay';
import { createRefundDelivery } from '../../src/payments/deliver-refund';
import { needsSomebody } from '../../src/reconciliation/findings';
import { reservedBefore } from '../../src/reconciliation/own-books';
import { reportLines } from '../../src/reconciliation/report';
import { type MadePayment, outcomesOf, type Reconciled, startReconciled } from '../support/reconciliation';
import type { StockCall } from '../support/stock-client';

// Three services on one busy database.
jest.setTimeout(60_000);

let used: Reconciled;
/** A payment that is in order. */
let good: MadePayment;

beforeAll(async () => {
  used = await startReconciled();
  // As after a restore that lost it.
  await used.database.rows('DROP INDEX payments_one_live_per_order');
});
beforeEach(async () => {
  await used.clear();
  good = await used.pay();
});
afterAll(() => used.stop());

/** Makes a refund whose process dies before or after the network was asked, and whose caller does not come back. */
async function refundHalfWay(dies: 'before' | 'after'): Promise<StockCall & { readonly requestId: string }> {
  const request = { payment_id: good.paymentId, amount_minor: '250', reason: 'broken' };
  const call = { method: 'RefundPayment', request, requestId: newRequestId() };
  used.hold((point) => (point === dies ? Promise.reject(new Error('the process dies here')) : Promise.resolve()));
  const { code } = await used.client.call(call);
  used.hold(() => Promise.resolve());
  if (code !== status.INTERNAL) throw new Error(`expected to be left half way, got ${status[code]}`);
  return call;
}
async function cancel({ paymentId }: MadePayment): Promise<void> {
  await used.client.call({ method: 'CancelPayment', request: { payment_id: paymentId } });
}
/** Lets more time go by than callers and the completer take to come back. */
async function aDayLater(): Promise<void> {
  await used.age();
  await used.database.rows(
    `UPDATE idempotency_record SET lease_until = now() - interval '25 hours' WHERE state = 'claimed'`,
  );
}
const refundRows = () =>
  used.database.rows('SELECT state, amount_minor::int AS amount FROM refunds ORDER BY created_at, amount');
const setRecord = ({ requestId }: { readonly requestId?: string | undefined }, set: string) =>
  used.database.rows(`UPDATE idempotency_record SET ${set} WHERE request_id = $1`, [requestId]);

describe('a refund that was begun and not noted as made', () => {
  it.each(['before', 'after'] as const)(
    'is found when nobody goes on with it any more, and carried out once, where the process died %s the network was asked',
    async (dies) => {
      const call = await refundHalfWay(dies);
      await aDayLater();
      const report = await used.reconcile({ repair: false });
      expect(report.findings).toMatchObject([
        {
          outcome: { kind: 'found' },
          finding: {
            ...{ kind: 'refund_unfinished', request: 'claimed' },
            refund: { paymentId: good.paymentId, orderId: good.order, amountMinor: 250n, requestId: call.requestId },
          },
        },
      ]);
      expect(needsSomebody(report)).toBe(true);
      expect(reportLines(report)[1]).toMatch(
        new RegExp(
          `^refund_unfinished +${good.paymentId} +local/${good.order} +\\S{36} +250 EUR, its request is claimed +found; `,
        ),
      );
      expect(await refundRows()).toEqual([{ state: 'reserved', amount: 250 }]);

      expect(outcomesOf(await used.reconcile())).toEqual(['refund_unfinished repaired']);
      expect(await refundRows()).toEqual([{ state: 'done', amount: 250 }]);
      expect(await used.refunds()).toEqual({ count: 1, sum: 250 });
      expect(outcomesOf(await used.reconcile())).toEqual([]);

      const late = await used.client.call(call);
      expect(late.code).toBe(status.OK);
      expect(await refundRows()).toEqual([{ state: 'done', amount: 250 }]);
      expect(await used.refunds()).toEqual({ count: 1, sum: 250 });
    },
  );

  it('is left alone while somebody may come back for it, and while it is young', async () => {
    await refundHalfWay('before');
    const young = await used.reconcile();
    expect(young).toMatchObject({ findings: [], underWay: [] });
    await used.age();
    const report = await used.reconcile();
    expect(report.findings).toEqual([]);
    expect(report.underWay).toMatchObject([{ subject: 'refund', why: 'claimed' }]);
    expect(await refundRows()).toEqual([{ state: 'reserved', amount: 250 }]);
    expect(await used.refunds()).toEqual({ count: 0, sum: 0 });
  });

  it.each([
    ['is parked', `state = 'parked'`, 'parked'],
    ['was lost', undefined, 'none'],
  ])('is found at once where its request %s', async (_, set, request) => {
    const call = await refundHalfWay('before');
    if (set === undefined)
      await used.database.rows(`DELETE FROM idempotency_record WHERE request_id = '${call.requestId}'`);
    else await setRecord(call, set);
    await used.age();
    const report = await used.reconcile();
    expect(report.findings).toMatchObject([
      { outcome: { kind: 'repaired' }, finding: { kind: 'refund_unfinished', request } },
    ]);
    expect(await refundRows()).toEqual([{ state: 'done', amount: 250 }]);
    expect(await used.refunds()).toEqual({ count: 1, sum: 250 });
  });

  it('is not carried out where its request is taken up again between the look and the repair', async () => {
    const call = await refundHalfWay('before');
    await aDayLater();
    const report = await used.reconcile({
      refundRecordOf: async (request) => {
        const seen = await used.refundRecordOf(request);
        await setRecord(call, `lease_until = now() + interval '30 s'`);
        return seen;
      },
    });
    expect(outcomesOf(report)).toEqual(['refund_unfinished left']);
    expect(await used.refunds()).toEqual({ count: 0, sum: 0 });
  });

  it('is none where it is noted as made while it is looked at, and gone where that happens before the repair', async () => {
    await refundHalfWay('after');
    await aDayLater();
    const note = () =>
      used.database.rows(`UPDATE refunds SET state = 'done', network_refund_id = 'x' WHERE state = 'reserved'`);
    const looking = await used.reconcile({
      refundRecordOf: async (request) => {
        await note();
        return used.refundRecordOf(request);
      },
    });
    expect(looking.findings).toEqual([]);

    await used.database.rows(`UPDATE refunds SET state = 'reserved', network_refund_id = NULL`);
    const find = async (id: string) => {
      await note();
      return used.books.find(id);
    };
    const authorizer = { refund: () => Promise.reject(new Error('asked again')) };
    const report = await used.reconcile({ network: { ...used.books, find, authorizer } });
    expect(outcomesOf(report)).toEqual(['refund_unfinished gone']);
  });

  it('is carried out once by two at the same time', async () => {
    await refundHalfWay('before');
    await aDayLater();
    await Promise.all([used.reconcile(), used.reconcile(), used.reconcile()]);
    expect(await refundRows()).toEqual([{ state: 'done', amount: 250 }]);
    expect(await used.refunds()).toEqual({ count: 1, sum: 250 });
  });

  it('waits for a person where the network may have forgotten its key, or does not know its charge', async () => {
    await refundHalfWay('after');
    await aDayLater();
    await used.database.rows(`UPDATE refunds SET created_at = now() - interval '8 days'`);
    const old = await used.reconcile();
    expect(old.findings).toMatchObject([{ outcome: { kind: 'left', why: expect.stringContaining('key') as string } }]);
    await used.database.rows(`UPDATE refunds SET created_at = now() - interval '1 day'`);
    await used.pay();
    await used.database.rows('DELETE FROM card_network_authorizations WHERE reference = $1', [good.paymentId]);
    const report = await used.reconcile();
    expect(report.findings.filter(({ finding }) => finding.kind === 'refund_unfinished')).toMatchObject([
      { outcome: { kind: 'left', why: expect.stringContaining('charge') as string } },
    ]);
    expect(await used.refunds()).toEqual({ count: 1, sum: 250 });
  });

  it('waits for a person where its payment is gone', async () => {
    await refundHalfWay('before');
    await used.pay();
    await used.database.rows('DELETE FROM payments WHERE payment_id = $1', [good.paymentId]);
    await aDayLater();
    const report = await used.reconcile({ since: new Date() });
    expect(outcomesOf(report)).toEqual(['refund_unfinished left']);
  });

  it('is the one of a cancelled payment where its event was lost; if that comes after all it changes nothing', async () => {
    const cancelled = await used.pay();
    await cancel(cancelled);
    await used.age();
    expect(outcomesOf(await used.reconcile())).toEqual(['refund_unfinished repaired']);
    expect(await refundRows()).toEqual([{ state: 'done', amount: 1250 }]);
    expect(await used.refunds()).toEqual({ count: 1, sum: 1250 });

    const database = connect({ connectionString: used.database.connectionString });
    const means = { prisma: database.business, authorizer: used.books.authorizer };
    const deliver = createRefundDelivery(means, () => Promise.resolve());
    await createRelay({ client: database.business, deliver }).runOnce();
    await database.close();
    expect(await used.database.count(`outbox_events WHERE state <> 'delivered'`)).toBe(0);
    expect(await used.refunds()).toEqual({ count: 1, sum: 1250 });
  });

  it('is that of a repair which was cut off', async () => {
    // Cancelled by hand, or before cancelling gave anything back.
    await used.database.rows(`UPDATE payments SET state = 'cancelled' WHERE payment_id = $1`, [good.paymentId]);
    await used.age();
    const cutOff = {
      ...used.books,
      authorizer: {
        refund: async (...asked: Parameters<typeof used.books.authorizer.refund>) => {
          await used.books.authorizer.refund(...asked);
          throw new Error('cut off');
        },
      },
    };
    expect(outcomesOf(await used.reconcile({ network: cutOff }))).toEqual(['cancelled_charge left']);
    await used.age();
    expect(outcomesOf(await used.reconcile())).toEqual(['refund_unfinished repaired']);
    expect(await refundRows()).toEqual([{ state: 'done', amount: 1250 }]);
    expect(await used.refunds()).toEqual({ count: 1, sum: 1250 });
  });

  it('is that of a duplicate which is none any more: it is sent again under the key of its repair', async () => {
    const twice = await used.duplicateOf(good);
    await used.age();
    const cutOff = {
      ...used.books,
      refund: async (...asked: Parameters<typeof used.books.refund>) => {
        await used.books.refund(...asked);
        throw new Error('the process dies here');
      },
    };
    expect(outcomesOf(await used.reconcile({ network: cutOff }))).toEqual(['duplicate_payment left']);
    await used.database.rows(`UPDATE payments SET order_id = 'another' WHERE payment_id = $1`, [twice.paymentId]);
    await used.age();
    expect(outcomesOf(await used.reconcile())).toEqual(['refund_unfinished repaired']);
    expect(await used.refunds()).toEqual({ count: 1, sum: 1250 });
    expect(await used.database.rows('SELECT state FROM refunds')).toEqual([{ state: 'done' }]);
  });

  it('is looked for in pages, each refund once', async () => {
    await used.database.rows(
      `INSERT INTO refunds (refund_id, payment_id, scope, amount_minor, currency, reason, state, request_id)
       SELECT gen_random_uuid(), $1, 'local', 1, 'EUR', '', 'reserved', gen_random_uuid()::text FROM generate_series(1, 1001)`,
      [good.paymentId],
    );
    const database = connect({ connectionString: used.database.connectionString });
    const pages: string[][] = [];
    for await (const page of reservedBefore(database.business, new Date(Date.now() + 60_000))) {
      pages.push(page.map(({ refundId }) => refundId));
    }
    await database.close();
    expect(pages.map((page) => page.length)).toEqual([500, 500, 1]);
    expect(new Set(pages.flat()).size).toBe(1_001);
  });
});
