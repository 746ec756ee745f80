import { loadPolicies } from '../../src/idempotency/index';
import { createRefundDelivery } from '../../src/payments/deliver-refund';
import type { RefundMeans } from '../../src/payments/carry-out-refund';
import { createReceiptDelivery } from '../../src/receipts/deliver-receipt';
import { changedDescriptorSet, type MethodChange } from '../support/descriptor-set';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const RECEIPTS = '/receipts.v1.ReceiptsService/SendReceipt';
const REFUNDS = '/cardnetwork.v1.CardNetworkService/Refund';

/** Neither is asked for anything here. */
const unused = () => Promise.reject(new Error('nothing is delivered'));
const receiptsWith = (change: MethodChange, giveUpAfterMs?: number) => () =>
  createReceiptDelivery(
    { sendReceipt: unused },
    {
      policies: loadPolicies(changedDescriptorSet({ SendReceipt: change })),
      ...(giveUpAfterMs === undefined ? {} : { giveUpAfterMs }),
    },
  );
const refundsWith = (change: MethodChange) => () =>
  createRefundDelivery({} as RefundMeans, unused, loadPolicies(changedDescriptorSet({ Refund: change })));

const kept = (sentForMs: number, keptForMs: number, path: string) =>
  new Error(
    `events for ${path} are sent for ${sentForMs} ms, and it may forget their key after ${keptForMs} ms: ` +
      'send them for a shorter time, or raise its max_key_age and retention',
  );

describe('what delivers events is not made where they are sent for as long as their key may be forgotten (design 4.10)', () => {
  it('is made by the protos of this package', () => {
    createReceiptDelivery({ sendReceipt: unused });
    createRefundDelivery({} as RefundMeans, unused);
  });

  it.each([
    ['no longer takes the id of an event', { maxKeyAgeMs: 23 * HOUR_MS }],
    ['does not keep what it did', { retentionMs: 23 * HOUR_MS }],
  ])('receipts, where their service %s', (_, change) => {
    expect(receiptsWith(change)).toThrow(kept(23 * HOUR_MS, 23 * HOUR_MS, RECEIPTS));
  });

  it('receipts, by how long their relay sends them', () => {
    expect(receiptsWith({}, 24 * HOUR_MS)).toThrow(kept(DAY_MS, DAY_MS, RECEIPTS));
    receiptsWith({}, 24 * HOUR_MS - 1)();
    receiptsWith({ maxKeyAgeMs: 23 * HOUR_MS + 1 })();
  });

  it.each([
    ['no longer takes the key of a refund', { maxKeyAgeMs: 7 * DAY_MS }],
    ['does not keep what it did', { retentionMs: 7 * DAY_MS }],
  ])('refunds, where the card network %s', (_, change) => {
    expect(refundsWith(change)).toThrow(kept(7 * DAY_MS, 7 * DAY_MS, REFUNDS));
  });

  it('any, where the protos do not have who is told', () => {
    const make = () => createReceiptDelivery({ sendReceipt: unused }, { policies: { get: () => undefined } });
    expect(make).toThrow(new Error(`${RECEIPTS} has no policy: nothing says for how long its events may be sent`));
  });
});
