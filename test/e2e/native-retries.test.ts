import { randomUUID } from 'node:crypto';
import { type ChannelOptions, InterceptingCall, type Interceptor, status } from '@grpc/grpc-js';
import { descriptorSet } from '../../src/gen/descriptor-set';
import {
  CHANNEL_OPTIONS,
  type ClientEvent,
  createClientInterceptor,
  loadPolicies,
  safeChannelOptions,
} from '../../src/idempotency/index';
import { createAuthorizerGate } from '../support/authorizer-gate';
import { type FaultyStream, startFaultyProxy } from '../support/faulty-proxy';
import { paymentRequest } from '../support/payment-requests';
import { fail, PATHS, rawClient, startScriptedServer } from '../support/scripted-server';
import { createStockClient, type StockClient } from '../support/stock-client';
import { until } from '../support/until';
import { useService } from '../support/use-service';

const SERVICE_CONFIG = {
  methodConfig: [
    {
      name: [{ service: 'payments.v1.PaymentsService' }],
      retryPolicy: {
        maxAttempts: 5,
        initialBackoff: '0.01s',
        maxBackoff: '0.01s',
        backoffMultiplier: 1,
        retryableStatusCodes: ['ABORTED', 'UNAVAILABLE', 'INVALID_ARGUMENT', 'FAILED_PRECONDITION'],
      },
    },
  ],
};

// Case J1: such a client gives up its retries as soon as anything comes before the status.
describe('a stock client with a retry policy of its own', () => {
  const gate = createAuthorizerGate();
  const used = useService({ authorizer: gate.authorizer });
  let retrying: StockClient;

  beforeAll(() => {
    retrying = createStockClient(used.service.grpcPort, { 'grpc.service_config': JSON.stringify(SERVICE_CONFIG) });
  });
  afterAll(() => retrying.close());

  const calls = (outcome: string) => used.service.lines.filter((line) => line['outcome'] === outcome);

  it('comes again as late as it is told while the first attempt runs, and ends with its answer', async () => {
    const pay = { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() };
    const first = used.client.call(pay);
    await gate.asked(1);
    const second = retrying.call(pay);
    await until('two retries were told to wait', async () => calls('in_progress').length === 2);
    gate.answer(1);

    const [paid, replayed] = await Promise.all([first, second]);
    expect([paid.code, replayed.code]).toEqual([status.OK, status.OK]);
    expect(replayed.bytes).toEqual(paid.bytes);
    expect(replayed.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await used.database.count('payments')).toBe(1);
    expect(gate.timesAsked()).toBe(1);
    const [one = NaN, two = NaN] = calls('in_progress').map(({ time }) => Date.parse(String(time)));
    // By its own policy it would have waited 10 ms; no hint of the server is shorter than 50.
    expect(two - one).toBeGreaterThanOrEqual(45);
  });

  test.each<[string, string, string | undefined]>([
    ['without a key', 'missing_key', undefined],
    ['with a key that is none', 'malformed_key', 'order-1'],
  ])('sends a call %s once, although its policy would send it again', async (_, outcome, requestId) => {
    const answer = await retrying.call({ method: 'CreatePayment', request: paymentRequest(), requestId });
    expect(answer.code).toBe(status.INVALID_ARGUMENT);
    expect(calls(outcome)).toHaveLength(1);
  });

  it('sends other content under a used key once', async () => {
    const requestId = randomUUID();
    gate.answer(2);
    await retrying.call({ method: 'CreatePayment', request: paymentRequest(), requestId });
    const other = paymentRequest({ order_id: 'order-2' });
    const answer = await retrying.call({ method: 'CreatePayment', request: other, requestId });
    expect(answer).toMatchObject({ code: status.FAILED_PRECONDITION, error: { reason: 'REQUEST_ID_REUSED' } });
    expect(calls('mismatch')).toHaveLength(1);
  });
});

describe('a stock channel whose policy retries everything', () => {
  const stockService = useService();

  it('resends a keyless call whose first attempt was lost, and meets the refusal of the server', async () => {
    const cut: FaultyStream = { when: 'before', fault: (stream) => stream.session?.destroy() };
    const proxy = await startFaultyProxy(stockService.service.grpcPort, [cut]);
    const config = { 'grpc.service_config': JSON.stringify(SERVICE_CONFIG) };
    const client = createStockClient(Number(proxy.address.split(':')[1]), config);
    const answer = await client.call({ method: 'CreatePayment', request: paymentRequest() });
    client.close();
    proxy.close();
    expect(answer).toMatchObject({ code: status.FAILED_PRECONDITION, error: { reason: 'KEYLESS_RETRY' } });
    expect(proxy.streams.map((headers) => headers['grpc-previous-rpc-attempts'])).toEqual([undefined, '1']);
    expect(await stockService.database.count('payments')).toBe(0);
  });
});

describe('the client interceptor on a channel that retries by itself', () => {
  const config = { 'grpc.service_config': JSON.stringify(SERVICE_CONFIG) };
  const down = fail(status.UNAVAILABLE, 'down');
  const ends: (() => void)[] = [];
  afterEach(() => ends.splice(0).forEach((end) => end()));

  async function setUp(channelOptions: ChannelOptions, around: readonly Interceptor[] = []) {
    const server = await startScriptedServer(down);
    const events: ClientEvent[] = [];
    const interceptor = createClientInterceptor({
      ...{ policies: loadPolicies(descriptorSet), maxAttempts: 1 },
      onEvent: (event) => events.push(event),
    });
    const client = rawClient(server.address, [interceptor, ...around], channelOptions);
    ends.push(
      () => client.client.close(),
      () => server.close(),
    );
    const warnings = () => events.flatMap((event) => (event.type === 'native_retries' ? [event] : []));
    return { server, client, warnings };
  }

  const passThrough: Interceptor = (options, nextCall) => new InterceptingCall(nextCall(options));

  test.each<[string, readonly Interceptor[]]>([
    ['alone', []],
    ['with others below it', [passThrough, passThrough]],
  ])('says so once, %s', async (_, around) => {
    const { server, client, warnings } = await setUp(config, around);
    await client.call(PATHS.safe);
    await client.call(PATHS.safe);
    // Five native attempts for each: what the warning is about.
    expect(server.arrivals).toHaveLength(10);
    expect(warnings()).toEqual([
      {
        type: 'native_retries',
        switchedOff: false,
        message: expect.stringMatching(
          /^the channel retries by itself \(retryPolicy of payments\.v1\.PaymentsService in .* use CHANNEL_OPTIONS/,
        ) as string,
      },
    ]);
  });

  test.each<[string, ChannelOptions]>([
    ['CHANNEL_OPTIONS', { ...config, ...CHANNEL_OPTIONS }],
    ['safeChannelOptions', safeChannelOptions(config)],
    ['retries switched off', { ...config, 'grpc.enable_retries': 0 }],
  ])('has nothing to say with %s', async (_, channelOptions) => {
    const { server, client, warnings } = await setUp(channelOptions);
    await client.call(PATHS.safe);
    expect(server.arrivals).toHaveLength(1);
    expect(warnings()).toEqual([]);
  });
});
