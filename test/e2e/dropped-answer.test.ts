import { credentials, status } from '@grpc/grpc-js';
import { newRequestId } from '../../src/idempotency/index';
import { createPaymentsClient, type PaymentsClient } from '../../src/payments/payments-client';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { createAuthorizerGate } from '../support/authorizer-gate';
import { type CuttingProxy, startCuttingProxy } from '../support/cutting-proxy';
import { changedDescriptorSet } from '../support/descriptor-set';
import { deferred } from '../support/deferred';
import { statementsWaiting } from '../support/record-hold';
import { type ServiceInUse, useService } from '../support/use-service';

const PAYMENT = { orderId: 'order-1', amountMinor: 1250n, currency: 'EUR', paymentMethod: 'tok_visa', metadata: {} };

/** Our client, and what it reaches the service through. */
interface ReachedClient {
  readonly payments: PaymentsClient;
  readonly proxy: CuttingProxy;
}

async function reach(port: number): Promise<ReachedClient> {
  const proxy = await startCuttingProxy(port);
  const insecure = credentials.createInsecure();
  return { proxy, payments: createPaymentsClient(proxy.address, { credentials: insecure, initialBackoffMs: 1 }) };
}

function useClient(used: ServiceInUse): ReachedClient {
  const inUse = {} as { -readonly [Name in keyof ReachedClient]: ReachedClient[Name] };
  beforeAll(async () => Object.assign(inUse, await reach(used.service.grpcPort)));
  afterAll(() => {
    inUse.payments.close();
    inUse.proxy.close();
  });
  return inUse;
}

const startedCalls = async (used: ServiceInUse, method: string): Promise<string | undefined> =>
  new RegExp(`^grpc_server_started_total\\{.*grpc_method="${method}"\\} (\\d+)$`, 'm').exec(
    await used.service.metrics(),
  )?.[1];

describe('our client, when the handler ran and its answer was dropped', () => {
  const gate = createAuthorizerGate();
  const used = useService({ authorizer: gate.authorizer });
  const ours = useClient(used);

  it('sends a keyed payment again with its key, and the customer pays once', async () => {
    const requestId = newRequestId();
    const paid = ours.payments.createPayment(PAYMENT, { requestId });
    await gate.asked(1);
    ours.proxy.cut();
    gate.answer(1);

    const { payment } = await paid;
    expect(await startedCalls(used, 'CreatePayment')).not.toBe('1');
    expect(gate.timesAsked()).toBe(1);
    expect(await used.database.rows('SELECT payment_id::text, request_id FROM payments')).toEqual([
      { payment_id: payment?.paymentId, request_id: requestId },
    ]);
  });

  it('sends a read again without a key', async () => {
    gate.answer(2);
    const order = { ...PAYMENT, orderId: 'order-2' };
    const { payment } = await ours.payments.createPayment(order, { requestId: newRequestId() });
    const paymentId = payment?.paymentId ?? '';
    const lock = await used.database.pool.connect();
    await lock.query('BEGIN');
    await lock.query('LOCK TABLE payments IN ACCESS EXCLUSIVE MODE');
    const shown = ours.payments.getPayment({ paymentId });
    await statementsWaiting(used.database, 1);
    ours.proxy.cut();
    await statementsWaiting(used.database, 2);
    await lock.query('ROLLBACK');
    lock.release();

    expect(await shown).toMatchObject({ payment });
    expect(await startedCalls(used, 'GetPayment')).toBe('2');
  });
});

/** It promises nothing to keyless callers, so it runs them; the client goes by its own protos. */
describe('our client, when a server without protection ran a keyless payment and its answer was dropped', () => {
  const asked = deferred();
  const answer = deferred();
  let runs = 0;
  let service: AttemptService;
  let ours: ReachedClient;

  beforeAll(async () => {
    service = await startAttemptService({
      descriptorSet: changedDescriptorSet({ CreatePayment: { level: 'IDEMPOTENT' } }),
    });
    service.handle({
      createPayment: async (request, attempt) => {
        runs += 1;
        asked.resolve();
        await answer.promise;
        return payAndComplete(request, attempt);
      },
    });
    ours = await reach(service.port);
  });
  afterAll(async () => {
    ours.payments.close();
    ours.proxy.close();
    await service.stop();
  });

  it('sends it once and says why and how to repair that', async () => {
    const paid = ours.payments.createPayment(PAYMENT);
    await asked.promise;
    ours.proxy.cut();
    await expect(paid).rejects.toMatchObject({
      code: status.UNAVAILABLE,
      details: expect.stringMatching(/^retry refused: no request-id\. Send metadata request-id/) as unknown,
    });
    answer.resolve();

    await service.idempotency.idle();
    expect(runs).toBe(1);
    expect(await service.database.count('payments')).toBe(1);
  });
});
