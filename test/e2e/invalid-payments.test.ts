import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { paymentRequest } from '../support/payment-requests';
import { useService } from '../support/use-service';

const entries = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`note-${index}`, 'x']));

describe('a payment that cannot be made', () => {
  const used = useService();

  test.each<[string, Record<string, unknown>, string[]]>([
    ['an amount of 0', { amount_minor: '0' }, ['amount_minor']],
    ['a negative amount', { amount_minor: '-1' }, ['amount_minor']],
    ['the least amount there is', { amount_minor: '-9223372036854775808' }, ['amount_minor']],
    ['a currency in lower case', { currency: 'eur' }, ['currency']],
    ['a currency that nobody knows', { currency: 'QQQ' }, ['currency']],
    ['no currency', { currency: '' }, ['currency']],
    ['no order', { order_id: '' }, ['order_id']],
    ['an order with a NUL', { order_id: 'order\0' }, ['order_id']],
    ['an order that is too long', { order_id: 'o'.repeat(129) }, ['order_id']],
    ['no payment method', { payment_method: '' }, ['payment_method']],
    ['a payment method with a NUL', { payment_method: '\0' }, ['payment_method']],
    ['a payment method that is too long', { payment_method: 'p'.repeat(129) }, ['payment_method']],
    ['too many notes', { metadata: entries(51) }, ['metadata']],
    ['a note without a name', { metadata: { '': 'x' } }, ['metadata']],
    ['a note with a NUL in its name', { metadata: { 'a\0': 'x' } }, ['metadata']],
    ['a note with a NUL', { metadata: { a: 'x\0' } }, ['metadata']],
    ['a note that is too long', { metadata: { a: 'x'.repeat(1_025) } }, ['metadata']],
    [
      'nothing right',
      { order_id: '', amount_minor: '0', currency: 'euro', payment_method: '', metadata: { '': '' } },
      ['order_id', 'amount_minor', 'currency', 'payment_method', 'metadata'],
    ],
  ])('for %s names what is wrong, and its key stays free for the corrected one', async (what, change, fields) => {
    const requestId = randomUUID();
    const orderId = `corrected: ${what}`;
    const pay = { method: 'CreatePayment', requestId };

    const refused = await used.client.call({ ...pay, request: paymentRequest(change) });

    expect(refused.code).toBe(status.INVALID_ARGUMENT);
    expect(refused.error.violations.map(({ field }) => field)).toEqual(fields);
    expect(refused.trailersOnly).toBe(true);
    expect(await used.database.count(`idempotency_record WHERE request_id = '${requestId}'`)).toBe(0);
    expect(await used.database.count(`payments WHERE request_id = '${requestId}'`)).toBe(0);

    const corrected = { ...pay, request: paymentRequest({ order_id: orderId }) };
    const paid = await used.client.call(corrected);
    const again = await used.client.call(corrected);

    expect(paid.code).toBe(status.OK);
    expect(paid.trailers.get('idempotent-replayed')).toEqual([]);
    expect(again.bytes).toEqual(paid.bytes);
    expect(await used.database.rows('SELECT order_id FROM payments WHERE request_id = $1', [requestId])).toEqual([
      { order_id: orderId },
    ]);
  });

  test.each<[string, Record<string, unknown>]>([
    ['the longest texts', { order_id: 'o'.repeat(128), payment_method: 'p'.repeat(128) }],
    ['the most notes', { metadata: entries(50) }],
    ['the longest note', { metadata: { ['n'.repeat(128)]: 'x'.repeat(1_024) } }],
    ['the smallest amount', { amount_minor: '1' }],
    ['no notes', { metadata: {} }],
  ])('is told from one with %s', async (_, change) => {
    const call = { method: 'CreatePayment', request: paymentRequest(change), requestId: randomUUID() };
    expect(await used.client.call(call)).toMatchObject({ code: status.OK });
  });

  it('was never shown to the authorizer', () => {
    expect(used.authorizations.every(({ amountMinor }) => amountMinor > 0n)).toBe(true);
  });
});
