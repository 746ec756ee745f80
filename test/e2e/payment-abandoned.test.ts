import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { newRequestId } from '../../src/idempotency/index';
import { paymentRequest } from '../support/payment-requests';
import { type PaymentsWithNetwork, startPaymentsWithNetwork } from '../support/payments-with-network';
import { type ServiceProcess, startServiceProcess } from '../support/service-process';
import { createStockClient, type StockCall } from '../support/stock-client';
import { until } from '../support/until';

// Processes of their own on a busy machine.
jest.setTimeout(60_000);

describe('a payment whose process died after the draft, and whose caller does not come back (design 4.10)', () => {
  const order = `order-${randomUUID()}`;
  const request = paymentRequest({ order_id: order });
  const abandoned: StockCall = { method: 'CreatePayment', request, requestId: newRequestId() };
  const running: { stop(): Promise<void> }[] = [];
  let used: PaymentsWithNetwork;

  afterAll(async () => {
    for (const part of running.reverse()) await part.stop();
  });

  const start = async (environment: Readonly<Record<string, string>>): Promise<PaymentsWithNetwork> => {
    const started = await startPaymentsWithNetwork({ environment });
    running.push(started);
    return started;
  };
  const abandon = async (victim: ServiceProcess): Promise<void> => {
    const caller = createStockClient(victim.grpcPort);
    const cut = caller.call(abandoned);
    await victim.authorizerAsked(1);
    victim.kill('SIGKILL');
    expect((await cut).code).toBe(status.UNAVAILABLE);
    await victim.exited;
    caller.close();
    // Much later.
    await used.database.rows(`UPDATE idempotency_record SET lease_until = now() - interval '2 hours'`);
  };
  const records = () =>
    used.database.rows('SELECT state, attempt FROM idempotency_record WHERE request_id = $1', [abandoned.requestId]);

  it('stays as it is while RESUME_INTERVAL_MS is 0, and blocks its order', async () => {
    used = await start({ RESUME_INTERVAL_MS: '0' });
    const { connectionString } = used.database;
    await abandon(await startServiceProcess({ connectionString, authorizerWaits: true }));
    // Longer than a look at the start would take.
    const other = paymentRequest({ order_id: randomUUID() });
    expect(await used.client.call({ ...abandoned, request: other, requestId: newRequestId() })).toMatchObject({
      code: status.OK,
    });
    expect(await records()).toEqual([{ state: 'claimed', attempt: 1 }]);
    expect(await used.client.call({ ...abandoned, requestId: newRequestId() })).toMatchObject({
      error: { reason: 'ORDER_PAYMENT_IN_PROGRESS' },
    });
  });

  it('is completed in the background otherwise: once, with one authorization', async () => {
    const { database, network } = used;
    const service = await startServiceProcess({
      connectionString: database.connectionString,
      environment: { RESUME_INTERVAL_MS: '50', CARD_NETWORK_ADDRESS: network.address },
    });
    running.push({ stop: async () => void (service.kill('SIGKILL'), await service.exited) });
    await until('it is completed', async () => (await database.count(`payments WHERE order_id = '${order}'`)) === 1);
    await until('it is recorded', async () => JSON.stringify(await records()).includes('completed'));
    expect(await records()).toEqual([{ state: 'completed', attempt: 2 }]);
    const [payment] = await database.rows<{ id: string; authorization: string }>(
      'SELECT payment_id::text AS id, authorization_id AS authorization FROM payments WHERE order_id = $1',
      [order],
    );
    const charges =
      'SELECT authorization_id::text AS authorization FROM card_network_authorizations WHERE reference = $1';
    expect(await database.rows(charges, [payment?.id])).toEqual([{ authorization: payment?.authorization }]);
    expect(await database.count(`payment_drafts WHERE order_id = '${order}'`)).toBe(0);
    const replay = await used.client.call(abandoned);
    expect(replay.response?.payment.payment_id).toBe(payment?.id);
    expect(replay.trailers.get('idempotent-replayed')).toEqual(['true']);
  });
});
