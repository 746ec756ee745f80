import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { CreatePaymentRequest } from '../../src/gen/proto/payments/v1/payments';
import { StatusError } from '../../src/idempotency/index';
import { type Authorizer, createStandInAuthorizer } from '../../src/payments/authorizer';
import { createAuthorizerGate } from '../support/authorizer-gate';
import { paymentRequest } from '../support/payment-requests';
import { makeTemporaryDirectory } from '../support/postgres';
import { pythonObstacle, runPython } from '../support/python';
import { ROOT, runProgram } from '../support/run-program';
import { fail, PATHS, startScriptedServer } from '../support/scripted-server';
import { createStockClient, type StockClient } from '../support/stock-client';
import { until } from '../support/until';
import { useService } from '../support/use-service';

/** Runs the program of `npx grpc-idempotency` to its end. */
async function cli(...args: readonly string[]) {
  const run = runProgram(['--import', 'tsx', join(ROOT, 'src', 'cli', 'main.ts'), ...args]);
  return { code: await run.exited, output: run.output() };
}

/** Authorizes at the second time of asking where the card says so, and when a test says so where that does. */
function createShakyAuthorizer() {
  const gate = createAuthorizerGate();
  const seen = new Set<string>();
  const authorizer: Authorizer = {
    ...createStandInAuthorizer(),
    authorize: async (request, call) => {
      if (request.paymentMethod === 'tok_gated') return gate.authorizer.authorize(request, call);
      const isFirst = !seen.has(request.paymentMethod);
      seen.add(request.paymentMethod);
      if (isFirst) throw new StatusError(status.UNAVAILABLE, 'the card network is away');
      return { kind: 'authorized', authorizationId: `authorization-${randomUUID()}` };
    },
  };
  return { gate, authorizer };
}

describe('the service config that service-config prints', () => {
  const { gate, authorizer } = createShakyAuthorizer();
  const used = useService({ authorizer });
  let config: string;
  let stock: StockClient;

  beforeAll(async () => {
    const printed = await cli('service-config', '--service', 'payments.v1.PaymentsService');
    expect(printed.code).toBe(0);
    config = printed.output;
    stock = createStockClient(used.service.grpcPort, { 'grpc.service_config': config });
  }, 60_000);
  afterAll(() => stock.close());

  const lines = (outcome: string) => used.service.lines.filter((line) => line['outcome'] === outcome);
  const paymentsOf = (orderId: unknown) => used.database.count(`payments WHERE order_id = '${String(orderId)}'`);

  it('retries what is safe by its level or by an enforced key, and nothing else; every call has a deadline', () => {
    const service = 'payments.v1.PaymentsService';
    const backoff = { maxAttempts: 5, initialBackoff: '0.1s', maxBackoff: '5s', backoffMultiplier: 2 };
    const named = (...methods: readonly string[]) => methods.map((method) => ({ service, method }));
    expect(JSON.parse(config)).toEqual({
      methodConfig: [
        { name: [{ service }], timeout: '30s' },
        {
          name: named('GetPayment', 'ListPayments', 'CancelPayment', 'UpdatePayment'),
          timeout: '30s',
          retryPolicy: { ...backoff, retryableStatusCodes: ['UNAVAILABLE'] },
        },
        {
          name: named('CreatePayment', 'RefundPayment'),
          timeout: '30s',
          retryPolicy: { ...backoff, retryableStatusCodes: ['UNAVAILABLE', 'ABORTED'] },
        },
      ],
      retryThrottling: { maxTokens: 10, tokenRatio: 0.1 },
    });
  });

  it('passes the check that finds unsafe retries', async () => {
    const directory = await makeTemporaryDirectory();
    const file = join(directory, 'config.json');
    await writeFile(file, config);
    const checked = await cli('check-proto', '--service-config', file);
    await rm(directory, { recursive: true });
    expect(checked.output).toMatch(/^\d+ methods, 0 faults$/m);
    expect(checked.code).toBe(0);
  });

  describe('to a client of grpc-js', () => {
    it('a keyed payment that meets UNAVAILABLE is paid by the retry, once', async () => {
      const request = paymentRequest({ payment_method: `tok_${randomUUID()}` });
      const paid = await stock.call({ method: 'CreatePayment', request, requestId: randomUUID() });
      expect(paid.code).toBe(status.OK);
      expect(await paymentsOf(request['order_id'])).toBe(1);
      expect(paid.trailers.get('idempotent-replayed')).toEqual([]);
    });

    it('one that runs already is asked for again as late as the server says, and its answer replayed', async () => {
      const request = paymentRequest({ payment_method: 'tok_gated' });
      const pay = { method: 'CreatePayment', request, requestId: randomUUID() };
      const first = used.client.call(pay);
      await gate.asked(1);
      const second = stock.call(pay);
      await until('the second was told to wait', async () => lines('in_progress').length > 0);
      gate.answer(1);
      const [paid, replayed] = await Promise.all([first, second]);
      expect([paid.code, replayed.code]).toEqual([status.OK, status.OK]);
      expect(replayed.bytes).toEqual(paid.bytes);
      expect(replayed.trailers.get('idempotent-replayed')).toEqual(['true']);
      expect(await paymentsOf(request['order_id'])).toBe(1);
    });

    it('a keyless payment is refused at its only attempt', async () => {
      const before = lines('missing_key').length;
      const answer = await stock.call({ method: 'CreatePayment', request: paymentRequest() });
      expect(answer).toMatchObject({ code: status.INVALID_ARGUMENT, error: { reason: 'REQUEST_ID_MISSING' } });
      expect(lines('missing_key')).toHaveLength(before + 1);
    });
  });

  test.each([
    ['CreatePayment', PATHS.unknown],
    ['GetPayment', PATHS.safe],
    ['CancelPayment', PATHS.idempotent],
  ])('makes five attempts of %s at a server that stays away, and then one per call', async (method, path) => {
    const server = await startScriptedServer(fail(status.UNAVAILABLE, 'away'));
    const client = createStockClient(server.port, { 'grpc.service_config': config });
    const call = async () => (await client.call({ method, request: {}, requestId: randomUUID() })).code;
    const arrivals = () => server.arrivals.filter((arrival) => arrival.path === path).length;
    const attempts = [await call().then(arrivals), await call().then(arrivals)];
    client.close();
    server.close();
    // The throttle counts failures of the whole target, so that an outage is not answered by a flood.
    expect(attempts).toEqual([5, 6]);
  });

  const obstacle = pythonObstacle();
  // A build server has what it takes, or the proof is missing there.
  if (obstacle !== undefined && process.env['CI']) throw new Error(obstacle);
  (obstacle === undefined ? describe : describe.skip)('to a client of grpcio', () => {
    interface Outcome {
      readonly code: string;
      readonly bytes: string | null;
      readonly replayed: boolean;
    }
    let directory: string;
    beforeAll(async () => {
      directory = await makeTemporaryDirectory();
      await writeFile(join(directory, 'config.json'), config);
    });
    afterAll(() => rm(directory, { recursive: true }));

    const bytesOf = (orderId: string, paymentMethod: string): string => {
      const message = { orderId, amountMinor: 1250n, currency: 'EUR', paymentMethod };
      return Buffer.from(CreatePaymentRequest.encode(CreatePaymentRequest.create(message)).finish()).toString('hex');
    };
    const pay = async (...args: readonly string[]): Promise<Outcome> => {
      const [port, file] = [String(used.service.grpcPort), join(directory, 'config.json')];
      return (await runPython('service_config_client.py', port, file, ...args)) as Outcome;
    };

    it('a keyed payment that meets UNAVAILABLE is paid by the retry, once', async () => {
      const orderId = `order-${randomUUID()}`;
      const paid = await pay(bytesOf(orderId, `tok_${randomUUID()}`), randomUUID());
      expect(paid).toMatchObject({ code: 'OK', replayed: false });
      expect(await paymentsOf(orderId)).toBe(1);
    });

    it('one that runs already is asked for again, and its answer replayed', async () => {
      const [orderId, requestId, refused] = [`order-${randomUUID()}`, randomUUID(), lines('in_progress').length];
      const time = gate.timesAsked() + 1;
      const request = { order_id: orderId, amount_minor: '1250', currency: 'EUR', payment_method: 'tok_gated' };
      const first = used.client.call({ method: 'CreatePayment', request, requestId });
      await gate.asked(time);
      const second = pay(bytesOf(orderId, 'tok_gated'), requestId);
      await until('the second was told to wait', async () => lines('in_progress').length > refused);
      gate.answer(time);
      expect(await second).toMatchObject({ code: 'OK', replayed: true, bytes: (await first).bytes?.toString('hex') });
      expect(await paymentsOf(orderId)).toBe(1);
    });

    it('a keyless payment is refused at its only attempt', async () => {
      const before = lines('missing_key').length;
      expect(await pay(bytesOf('order-1', 'tok_visa'))).toMatchObject({ code: 'INVALID_ARGUMENT', bytes: null });
      expect(lines('missing_key')).toHaveLength(before + 1);
    });
  });
});
