import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import { createStandInAuthorizer } from '../../src/payments/authorizer';
import { paymentRequest } from '../support/payment-requests';
import { useService } from '../support/use-service';

/** What a request holds that is nobody's business. */
const PRIVATE = { payment_method: 'tok_4242424242424242', metadata: { gift: 'for-my-aunt' } };
const METHOD = '/payments.v1.PaymentsService/CreatePayment';

const busy = () => new StatusError(status.ABORTED, 'ask later', [], { reason: 'BUSY', domain: 'bank' });
const away = () => new StatusError(status.UNAVAILABLE, 'the bank is away', [], { reason: 'BANK_AWAY', domain: 'bank' });

describe('the log', () => {
  const used = useService({
    authorizer: {
      ...createStandInAuthorizer(),
      authorize: async (request, call) => {
        await delay(0);
        if (request.currency === 'TRY') throw new Error('the bank hung up');
        if (request.currency === 'NOK') throw busy();
        if (request.currency === 'DKK') return { kind: 'declined', reason: 'stolen_card' };
        if (request.currency === 'SEK') throw Object.assign(away(), { cause: new Error('cable cut') });
        return createStandInAuthorizer().authorize(request, call);
      },
    },
  });

  const linesOf = (requestId: string | undefined) =>
    used.service.lines.filter((line) => line['msg'] === 'keyed call' && line['requestId'] === requestId);
  const pay = (requestId: string | undefined, change: Record<string, unknown> = {}) =>
    used.client.call({
      method: 'CreatePayment',
      request: paymentRequest({ ...PRIVATE, order_id: `order-${requestId}`, ...change }),
      requestId,
    });

  it('has one line per keyed call that tells who was charged', async () => {
    const requestId = randomUUID();
    const paid = await pay(requestId);
    await pay(requestId);
    await pay(requestId, { amount_minor: '1' });
    const [row] = await used.database.rows<{ payment_id: string; authorization_id: string }>(
      'SELECT payment_id::text, authorization_id FROM payments WHERE request_id = $1',
      [requestId],
    );

    expect(paid.response?.payment.payment_id).toBe(row?.payment_id);
    expect(linesOf(requestId)).toMatchObject([
      {
        ...{ level: 'info', requestId, method: METHOD, outcome: 'claimed', attempt: 1, code: 'OK' },
        'published.order_id': `order-${requestId}`,
        'published.payment_id': row?.payment_id,
        'published.authorization_id': row?.authorization_id,
        'published.state': 'authorized',
      },
      { level: 'info', requestId, method: METHOD, outcome: 'replayed', code: 'OK' },
      { level: 'warn', requestId, outcome: 'mismatch', code: 'FailedPrecondition', reason: 'REQUEST_ID_REUSED' },
    ]);
  });

  it('has a line for a call whose key is missing, and for one that failed before it paid', async () => {
    await pay(undefined);
    const failed = randomUUID();
    await pay(failed, { currency: 'TRY' });
    expect(linesOf(undefined)).toMatchObject([{ level: 'warn', outcome: 'missing_key', code: 'InvalidArgument' }]);
    expect(linesOf(failed)).toMatchObject([
      { level: 'error', outcome: 'claimed', 'published.order_id': `order-${failed}` },
    ]);
    expect(linesOf(failed)[0]).not.toHaveProperty('published.payment_id');
  });

  it('tells by the key of a request why its attempt failed, and that it was let go of for a while', async () => {
    const requestId = randomUUID();
    await pay(requestId, { currency: 'SEK' });
    const [line, ...others] = linesOf(requestId);
    expect(others).toEqual([]);
    expect(line).toMatchObject({ level: 'error', outcome: 'claimed', code: 'Unavailable', reason: 'BANK_AWAY' });
    expect(line?.['err']).toMatch(/the bank is away[^]*caused by: Error: cable cut/);
    const besides = used.service.lines.filter((other) => other['requestId'] === requestId && other !== line);
    expect(besides).toMatchObject([
      {
        level: 'warn',
        msg: expect.stringContaining('a lease was ended early') as unknown,
        pausedMs: expect.any(Number) as unknown,
      },
    ]);
  });

  it('tells by the key of a request what broke', async () => {
    const requestId = randomUUID();
    await pay(requestId, { currency: 'TRY' });
    const broke = used.service.lines.filter((line) => line['requestId'] === requestId && line['err'] !== undefined);
    expect(broke).toMatchObject([{ level: 'error', msg: 'the handler failed', method: METHOD }]);
    expect(broke[0]?.['err']).toContain('the bank hung up');
  });

  it('tells the reason of a refusal that its handler threw past a recovery point, and what it was', async () => {
    const [requestId, order] = [randomUUID(), { order_id: 'order-in-progress', currency: 'NOK' }];
    await pay(requestId, order);
    const [line] = linesOf(requestId);
    expect(line).toMatchObject({ code: 'Unavailable', reason: 'BUSY' });
    expect(line?.['err']).toContain('ABORTED: ask later');
  });

  it('tells why a request was refused for good, and again whenever that is replayed', async () => {
    const requestId = randomUUID();
    await pay(requestId, { currency: 'DKK' });
    await pay(requestId, { currency: 'DKK' });
    const lines = linesOf(requestId);
    expect(lines).toMatchObject([
      { level: 'info', outcome: 'claimed', attempt: 1, code: 'FailedPrecondition', reason: 'CARD_DECLINED' },
      { level: 'info', outcome: 'replayed', code: 'FailedPrecondition', reason: 'CARD_DECLINED' },
    ]);
    // What the reason is about goes to the caller alone.
    expect(JSON.stringify(lines)).not.toContain('stolen_card');
  });

  it('has no line for calls that take no key', async () => {
    const before = used.service.lines.length;
    await used.client.call({ method: 'GetPayment', request: { payment_id: randomUUID() } });
    expect(used.service.lines).toHaveLength(before);
  });

  it('never holds what was in a request', async () => {
    await pay(randomUUID(), { currency: 'eur' });
    await pay('not-a-key');
    const text = JSON.stringify(used.service.lines);
    expect(text).toContain('the bank hung up');
    expect(text).not.toContain(PRIVATE.payment_method);
    expect(text).not.toContain(PRIVATE.metadata.gift);
  });
});
