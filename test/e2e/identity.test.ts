import { randomUUID } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { paymentRequest } from '../support/payment-requests';
import type { StockAnswer, StockCall } from '../support/stock-client';
import { useService } from '../support/use-service';

/** Tokens that are nowhere else, so that any text that holds one is a leak. */
const SHOP_1 = `shop-1-${randomUUID()}`;
const SHOP_1_NEXT = `shop-1-next-${randomUUID()}`;
const SHOP_1_RENAMED = `shop-1-renamed-${randomUUID()}`;
const SHOP_2 = `shop-2-${randomUUID()}`;
const UNKNOWN = `unknown-${randomUUID()}`;

const directory = mkdtempSync(join(tmpdir(), 'grpc-idempotency-identity-'));
const tokensFile = join(directory, 'accounts.json');
const tokens = { [SHOP_1]: 'shop-1', [SHOP_1_NEXT]: 'shop-1', [SHOP_1_RENAMED]: 'shop-eu', [SHOP_2]: 'shop-2' };
writeFileSync(tokensFile, JSON.stringify({ tokens, aliases: { 'shop-eu': 'shop-1' } }));
chmodSync(tokensFile, 0o644);

/** By its form no loopback address, and yet nothing else is listened on. */
const REACHABLE_BY_ITS_FORM = '127.1';

describe('with bearer tokens', () => {
  const used = useService({
    environment: { AUTH_MODE: 'tokens', AUTH_TOKENS_FILE: tokensFile, GRPC_HOST: REACHABLE_BY_ITS_FORM },
  });

  beforeEach(() => used.database.rows('TRUNCATE payments, idempotency_record'));
  afterAll(() => rmSync(directory, { recursive: true }));

  const callAs = (token: string, call: StockCall): Promise<StockAnswer> =>
    used.client.call({ ...call, metadata: { authorization: `Bearer ${token}`, ...call.metadata } });

  const payAs = (token: string, requestId: string, request: object): Promise<StockAnswer> =>
    callAs(token, { method: 'CreatePayment', request, requestId });

  it('the start warns of a file that everybody can read, and of tokens that travel in the clear', () => {
    const warnings = used.service.lines.filter(({ level }) => level === 'warn').map(({ msg }) => msg);
    expect(warnings).toEqual([
      `every user of this machine can read the tokens in ${tokensFile}; chmod o-r ends that`,
      expect.stringContaining('connections are not encrypted'),
    ]);
  });

  it('all tokens of one account share its keys, also by an alias', async () => {
    const [requestId, request] = [randomUUID(), paymentRequest()];
    const first = await payAs(SHOP_1, requestId, request);
    expect(first.code).toBe(status.OK);
    for (const token of [SHOP_1_NEXT, SHOP_1_RENAMED]) {
      const again = await payAs(token, requestId, request);
      expect(again.trailers.get('idempotent-replayed')).toEqual(['true']);
      expect(again.bytes).toEqual(first.bytes);
    }
    expect(await used.database.rows('SELECT scope FROM payments')).toEqual([{ scope: 'shop-1' }]);
  });

  it('the same key of another account is a payment of its own: it reads nothing and blocks nothing (case F1)', async () => {
    const [requestId, request] = [randomUUID(), paymentRequest()];
    const squatter = await payAs(SHOP_2, requestId, paymentRequest());
    const first = await payAs(SHOP_1, requestId, request);
    const other = await payAs(SHOP_2, requestId, request);
    // What the caller says of itself widens nothing.
    const claiming = { scope: 'shop-1', account: 'shop-1', 'x-tenant-id': 'shop-1' };
    const pretender = await callAs(SHOP_2, { method: 'CreatePayment', request, requestId, metadata: claiming });

    expect([squatter.code, first.code]).toEqual([status.OK, status.OK]);
    expect(first.trailers.get('idempotent-replayed')).toEqual([]);
    for (const mismatch of [other, pretender]) {
      expect(mismatch).toMatchObject({ code: status.FAILED_PRECONDITION, error: { reason: 'REQUEST_ID_REUSED' } });
    }
    const scopes = [{ scope: 'shop-1' }, { scope: 'shop-2' }];
    expect(await used.database.rows('SELECT scope FROM payments ORDER BY scope')).toEqual(scopes);
    expect(await used.database.rows('SELECT scope FROM idempotency_record ORDER BY scope')).toEqual(scopes);
  });

  it('a payment of another account is not there, whatever is asked of it', async () => {
    const request = paymentRequest();
    const paid = await payAs(SHOP_1, randomUUID(), request);
    const payment = paid.response?.payment as Readonly<Record<string, unknown>>;
    const before = await used.database.rows('SELECT * FROM payments');
    const paymentId = payment['payment_id'];

    const foreign = [
      { method: 'GetPayment', request: { payment_id: paymentId } },
      { method: 'CancelPayment', request: { payment_id: paymentId } },
      { method: 'UpdatePayment', request: { payment_id: paymentId, metadata: { a: 'b' }, etag: payment['etag'] } },
    ];
    for (const call of foreign) {
      expect(await callAs(SHOP_2, call)).toMatchObject({ code: status.NOT_FOUND, bytes: undefined });
    }
    for (const filter of [{}, { order_id: request['order_id'] }]) {
      const listed = await callAs(SHOP_2, { method: 'ListPayments', request: filter });
      expect([listed.code, listed.bytes?.length]).toEqual([status.OK, 0]);
    }
    expect(await used.database.rows('SELECT * FROM payments')).toEqual(before);
    const own = await callAs(SHOP_1_NEXT, { method: 'GetPayment', request: { payment_id: paymentId } });
    expect(own.response?.payment.payment_id).toBe(paymentId);
  });

  const strangers: readonly [string, Readonly<Record<string, string>>][] = [
    ['no token', {}],
    ['an unknown token', { authorization: `Bearer ${UNKNOWN}` }],
    ['a token with garbage behind it', { authorization: `Bearer ${SHOP_1}x` }],
    ['two tokens', { authorization: `Bearer ${SHOP_1}, Bearer ${SHOP_2}` }],
    ['another scheme', { authorization: `Basic ${SHOP_1}` }],
    ['a token without a scheme', { authorization: SHOP_1 }],
    ['a token elsewhere', { 'x-authorization': `Bearer ${SHOP_1}` }],
  ];

  it.each(strangers)(
    'a caller with %s is refused, safe reads included, before anything is looked up',
    async (_, sent) => {
      const calls: readonly StockCall[] = [
        { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() },
        { method: 'GetPayment', request: { payment_id: randomUUID() } },
        { method: 'ListPayments', request: {} },
        { method: 'CancelPayment', request: { payment_id: randomUUID() } },
      ];
      for (const call of calls) {
        const answer = await used.client.call({ ...call, metadata: sent });
        expect(answer).toMatchObject({ code: status.UNAUTHENTICATED, error: { reason: 'PRINCIPAL_MISSING' } });
        expect(answer.bytes).toBeUndefined();
      }
      expect([await used.database.count('payments'), await used.database.count('idempotency_record')]).toEqual([0, 0]);
    },
  );

  it('no token is in any log line, not of refusals and not of faults', async () => {
    await payAs(SHOP_1, randomUUID(), paymentRequest());
    await payAs(UNKNOWN, randomUUID(), paymentRequest());
    await payAs(SHOP_2, 'garbage', paymentRequest());
    await used.database.rows('ALTER TABLE payments RENAME TO payments_elsewhere');
    const failed = await payAs(SHOP_1, randomUUID(), paymentRequest());
    const failedRead = await callAs(SHOP_2, { method: 'GetPayment', request: { payment_id: randomUUID() } });
    await used.database.rows('ALTER TABLE payments_elsewhere RENAME TO payments');

    expect([failed.code, failedRead.code]).toEqual([status.INTERNAL, status.INTERNAL]);
    const logged = JSON.stringify(used.service.lines);
    expect(logged).toContain('principal_missing');
    expect(logged).toContain('"level":"error"');
    for (const token of [...Object.keys(tokens), UNKNOWN]) expect(logged).not.toContain(token);
  });
});

describe('without identity', () => {
  const used = useService();

  it('the start warns, once, and every caller is the account "local"', async () => {
    const request = paymentRequest();
    const paid = await used.client.call({ method: 'CreatePayment', request, requestId: randomUUID() });
    expect(paid.code).toBe(status.OK);
    expect(await used.database.rows('SELECT scope FROM payments')).toEqual([{ scope: 'local' }]);
    expect(used.service.lines.filter(({ level }) => level === 'warn').map(({ msg }) => msg)).toEqual([
      'no identity is configured (AUTH_MODE=none): every caller is the account "local"',
    ]);
  });
});
