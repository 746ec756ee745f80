import { randomUUID } from 'node:crypto';
import { credentials, status } from '@grpc/grpc-js';
import type { NetworkFault } from '../../src/card-network/faults';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { CardNetworkServiceService } from '../../src/gen/proto/cardnetwork/v1/cardnetwork';
import { createPromiseClient, loadPolicies, newRequestId } from '../../src/idempotency/index';
import { callUntilAnswered } from '../support/call-until-answered';
import { deferred } from '../support/deferred';
import { paymentRequest } from '../support/payment-requests';
import { type PaymentsWithNetwork, startPaymentsWithNetwork } from '../support/payments-with-network';
import type { StockAnswer, StockCall } from '../support/stock-client';
import { endLeases } from '../support/stored-record';

// Three services on one busy database.
jest.setTimeout(60_000);

describe('CreatePayment in phases, with a card network behind it (design 4.10; cases C6, D2)', () => {
  let used: PaymentsWithNetwork;

  beforeAll(async () => (used = await startPaymentsWithNetwork({ networkTimeoutMs: 2_000 })));
  beforeEach(() => {
    for (const list of [used.faults, used.decisions, used.keysAsked, used.arrived]) list.length = 0;
    used.hold(() => Promise.resolve());
  });
  afterAll(() => used.stop());

  /** The call that pays an order, always the same one. */
  const payment = (): StockCall & { readonly order: string } => {
    const order = `order-${randomUUID()}`;
    return { order, method: 'CreatePayment', request: paymentRequest({ order_id: order }), requestId: newRequestId() };
  };

  /** What the books of both sides say of an order. */
  const books = async ({ order, requestId }: { readonly order: string; readonly requestId?: string | undefined }) => {
    const [row] = await used.database.rows<Record<string, number>>(
      `SELECT
         (SELECT count(*) FROM payments WHERE order_id = $1)::int AS payments,
         (SELECT count(*) FROM payment_drafts WHERE order_id = $1)::int AS drafts,
         (SELECT count(*) FROM outbox_events
          WHERE aggregate_id IN (SELECT payment_id::text FROM payments WHERE order_id = $1))::int AS events,
         (SELECT count(*) FROM card_network_authorizations
          WHERE request_id = ANY ($2) AND state = 'authorized')::int AS charges,
         (SELECT count(*) FROM card_network_authorizations
          WHERE request_id = ANY ($2) AND state = 'declined')::int AS declined`,
      [order, used.keysAsked],
    );
    const records = await used.database.rows<{ state: string }>(
      'SELECT state FROM idempotency_record WHERE request_id = $1',
      [requestId],
    );
    return { ...row, record: records[0]?.state };
  };
  const PAID = { payments: 1, drafts: 0, events: 1, charges: 1, declined: 0, record: 'completed' };
  const DECLINED = { payments: 0, drafts: 0, events: 0, charges: 0, declined: 1, record: 'completed' };

  it('charges once, under a derived key, and names the payment at the network by its id', async () => {
    const call = payment();
    const paid = await used.client.call(call);
    expect(paid.code).toBe(status.OK);
    expect(await books(call)).toEqual(PAID);
    const [charge] = await used.database.rows<{ reference: string; id: string; key: string }>(
      `SELECT reference, authorization_id::text AS id, request_id AS key FROM card_network_authorizations
       WHERE request_id = $1`,
      [used.keysAsked[0]],
    );
    expect(charge?.reference).toBe(paid.response?.payment.payment_id);
    expect(paid.response?.payment).toMatchObject({ authorization_id: charge?.id });
    // Dated like the key of the request, and another one.
    expect(charge?.key.slice(0, 13)).toBe(call.requestId?.slice(0, 13));
    expect(charge?.key).not.toBe(call.requestId);
  });

  it('an answer that is lost after the charge is found again under the same key: one charge', async () => {
    const call = payment();
    // As often as our client asks within one effect, so that the payment itself is sent again.
    used.faults.push(...Array.from({ length: 6 }, (): NetworkFault => ({ kind: 'lost_answer' })));
    const first = await used.client.call(call);
    expect(first).toMatchObject({
      code: status.UNAVAILABLE,
      error: { reason: 'CARD_NETWORK_UNAVAILABLE', domain: 'payments.v1' },
    });
    expect(await books(call)).toEqual({ ...PAID, payments: 0, events: 0, drafts: 1, record: 'claimed' });
    const { answer } = await callUntilAnswered(used.client, call);
    expect(answer.code).toBe(status.OK);
    expect(used.keysAsked.length).toBeGreaterThan(1);
    expect(new Set(used.keysAsked).size).toBe(1);
    expect(await books(call)).toEqual(PAID);
  });

  it.each<readonly [string, NetworkFault]>([
    ['is away', { kind: 'outage' }],
    ['never answers', { kind: 'silence' }],
    ['answers nonsense', { kind: 'nonsense' }],
  ])(
    'while the network %s the caller is told UNAVAILABLE in time, and the payment can be resumed',
    async (_, fault) => {
      const call = payment();
      used.faults.push(...Array.from({ length: 6 }, () => fault));
      const startedAt = performance.now();
      const first = await used.client.call(call);
      expect(performance.now() - startedAt).toBeLessThan(8_000);
      expect(first).toMatchObject({ code: status.UNAVAILABLE, error: { reason: 'CARD_NETWORK_UNAVAILABLE' } });
      expect(await books(call)).toMatchObject({ payments: 0, drafts: 1, record: 'claimed' });
      used.faults.length = 0;
      const { answer } = await callUntilAnswered(used.client, call);
      expect(new Set(used.keysAsked).size).toBe(1);
      if (fault.kind === 'nonsense') return;
      expect(answer.code).toBe(status.OK);
      expect(await books(call)).toEqual(PAID);
    },
  );

  it('an outage parks nothing, however often its caller asks: the payment is made when it is over', async () => {
    const call = payment();
    used.faults.push(...Array.from({ length: 300 }, (): NetworkFault => ({ kind: 'outage' })));
    const answers: StockAnswer[] = [];
    for (let time = 1; time <= 30; time += 1) answers.push(await used.client.call(call));
    const reasons = answers.map(({ error }) => error.reason);
    expect(reasons.slice(0, 2)).toEqual(['CARD_NETWORK_UNAVAILABLE', 'CARD_NETWORK_UNAVAILABLE']);
    expect(answers[1]?.error.retryDelayMs).toBe(2_000);
    expect(reasons).toContain('REQUEST_IN_PROGRESS');
    expect(used.keysAsked.length).toBeLessThan(5);
    used.faults.length = 0;
    await endLeases(used.database);
    expect((await used.client.call(call)).code).toBe(status.OK);
    expect(new Set(used.keysAsked).size).toBe(1);
    expect(await books(call)).toEqual(PAID);
  });

  it('an error that no retry would change is a fault to the caller, and the payment stays for a person', async () => {
    const call = payment();
    const network = createPromiseClient(CardNetworkServiceService, used.network.address, {
      policies: loadPolicies(descriptorSet),
      credentials: credentials.createInsecure(),
    });
    // The network knows the key from another request.
    used.hold(async (point) => {
      if (point !== 'before') return;
      const other = { reference: 'another', amountMinor: 1n, currency: 'EUR', paymentMethod: 'tok' };
      await network.authorize(other, { requestId: used.keysAsked.at(-1) });
    });
    expect(await used.client.call(call)).toMatchObject({ code: status.INTERNAL, details: 'internal error' });
    network.close();
    expect(await books(call)).toMatchObject({ payments: 0, drafts: 1, record: 'claimed' });
    expect(JSON.stringify(used.service.lines)).toContain('the key was already used for a request with other content');
  });

  it('a declined card is an answer: recorded, replayed, and the order can be paid with another card', async () => {
    const call = payment();
    used.decisions.push('insufficient_funds');
    const first = await used.client.call(call);
    const again = await used.client.call(call);
    for (const answer of [first, again]) {
      expect(answer).toMatchObject({ code: status.FAILED_PRECONDITION, details: 'the card was declined' });
      expect(answer.error).toMatchObject({ reason: 'CARD_DECLINED', domain: 'payments.v1' });
      expect(answer.error.metadata.get('decline_reason')).toBe('insufficient_funds');
    }
    expect(again.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(used.keysAsked).toHaveLength(1);
    expect(await books(call)).toEqual(DECLINED);
    const another = { ...call, requestId: newRequestId() };
    expect((await used.client.call(another)).code).toBe(status.OK);
    expect(await books(another)).toEqual({ ...PAID, declined: 1 });
  });

  it('no list and no look shows a payment that is under way', async () => {
    const call = payment();
    const asked = deferred();
    const answer = deferred();
    used.hold(async (point) => {
      if (point !== 'before') return;
      asked.resolve();
      await answer.promise;
    });
    const paying = used.client.call(call);
    await asked.promise;
    const listed = await used.client.call({ method: 'ListPayments', request: { order_id: call.order } });
    expect(listed).toMatchObject({ code: status.OK, response: {} });
    expect(listed.response).not.toHaveProperty('payments');
    const [draft] = await used.database.rows<{ id: string }>(
      'SELECT payment_id::text AS id FROM payment_drafts WHERE order_id = $1',
      [call.order],
    );
    const seen = await used.client.call({ method: 'GetPayment', request: { payment_id: draft?.id } });
    expect(seen.code).toBe(status.NOT_FOUND);
    answer.resolve();
    expect((await paying).response?.payment.payment_id).toBe(draft?.id);
  });

  describe.each<'before' | 'after'>(['before', 'after'])(
    'a stale attempt that wakes %s its request is sent',
    (point) => {
      /** The first attempt is held, another takes over and ends, then the first wakes. */
      const overtaken = async (
        call: StockCall,
      ): Promise<{ readonly winner: StockAnswer; readonly stale: StockAnswer }> => {
        const held = deferred();
        const wake = deferred();
        used.hold(async (at, time) => {
          if (at !== point || time !== 1) return;
          held.resolve();
          await wake.promise;
        });
        const first = used.client.call(call);
        await held.promise;
        await endLeases(used.database);
        const winner = await used.client.call(call);
        wake.resolve();
        return { winner, stale: await first };
      };

      it('is fenced, and the network sees equal keys and one charge', async () => {
        const call = payment();
        const { winner, stale } = await overtaken(call);
        expect(winner.code).toBe(status.OK);
        expect(stale.bytes).toEqual(winner.bytes);
        expect(stale.trailers.get('idempotent-replayed')).toEqual(['true']);
        expect(used.keysAsked).toHaveLength(2);
        expect(new Set(used.keysAsked).size).toBe(1);
        expect(await books(call)).toEqual(PAID);
      });

      it('is told that the card was declined where the other attempt was, and charges nothing', async () => {
        const call = payment();
        // Whoever asks first is declined; a second decision would be a yes.
        used.decisions.push('insufficient_funds');
        const { winner, stale } = await overtaken(call);
        for (const { code, error } of [winner, stale]) {
          expect(code).toBe(status.FAILED_PRECONDITION);
          expect(error.reason).toBe('CARD_DECLINED');
        }
        expect(new Set(used.keysAsked).size).toBe(1);
        expect(await books(call)).toEqual(DECLINED);
      });
    },
  );

  it('a payment that was recorded from the books of the network meanwhile is the answer', async () => {
    const call = payment();
    used.hold(async (point) => {
      if (point !== 'after') return;
      await used.database.rows(
        `WITH draft AS (DELETE FROM payment_drafts WHERE order_id = $1 RETURNING *)
         INSERT INTO payments (payment_id, scope, order_id, amount_minor, currency, payment_method, state,
                               authorization_id, etag, request_id)
         SELECT payment_id, scope, order_id, amount_minor, currency, payment_method, 'authorized',
                'found', gen_random_uuid(), request_id FROM draft`,
        [call.order],
      );
    });
    const answer = await used.client.call(call);
    expect(answer).toMatchObject({ code: status.OK, response: { payment: { authorization_id: 'found' } } });
    expect(await books(call)).toMatchObject({ payments: 1, charges: 1, record: 'completed' });
  });

  it('a charge whose draft was removed is not recorded: the request stays for a person', async () => {
    const call = payment();
    used.hold(async (point) => {
      if (point === 'after') await used.database.rows('DELETE FROM payment_drafts WHERE order_id = $1', [call.order]);
    });
    expect(await used.client.call(call)).toMatchObject({ code: status.INTERNAL });
    expect(await books(call)).toMatchObject({ payments: 0, events: 0, charges: 1, record: 'claimed' });
  });
});
