import { randomUUID } from 'node:crypto';
import { credentials, status } from '@grpc/grpc-js';
import { createRetryBudget, type IdempotencyError, newRequestId } from '../../src/idempotency/index';
import {
  createPaymentsClient,
  type PaymentsClient,
  type PaymentsClientOptions,
} from '../../src/payments/payments-client';
import { failureOf } from '../support/failure-of';
import { type FaultyProxy, type FaultyStream, FAULTS, startFaultyProxy } from '../support/faulty-proxy';
import { useService } from '../support/use-service';

// What goes wrong on the way to a real service whose rows are counted (cases J4 and J8, P1).
const used = useService();

const ends: (() => void)[] = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

interface Connected {
  readonly payments: PaymentsClient;
  readonly proxy: FaultyProxy;
}

async function connectThrough(
  faults: readonly FaultyStream[],
  options: Partial<PaymentsClientOptions> = {},
): Promise<Connected> {
  const proxy = await startFaultyProxy(used.service.grpcPort, faults);
  const payments = createPaymentsClient(proxy.address, {
    ...{ credentials: credentials.createInsecure(), attemptTimeoutMs: 2_000, timeoutMs: 20_000, initialBackoffMs: 1 },
    ...{ retryBudget: createRetryBudget() },
    ...options,
  });
  ends.push(
    () => payments.close(),
    () => proxy.close(),
  );
  return { payments, proxy };
}

const payment = (orderId = randomUUID()) => ({
  ...{ orderId, amountMinor: 1250n, currency: 'EUR', paymentMethod: 'tok_visa', metadata: {} },
});

const paymentsOf = (orderId: string) => used.database.count(`payments WHERE order_id = '${orderId}'`);

const cases = Object.entries(FAULTS).flatMap(([name, fault]) =>
  (['before', 'after'] as const).map((when) => ({ name, when, fault })),
);

test.each(cases)('$name $when the payment: a keyed call ends OK, with one effect', async ({ when, fault }) => {
  const { payments, proxy } = await connectThrough([{ when, fault }]);
  const request = payment();
  const replayed: boolean[] = [];
  const onEnd = (end: { readonly replayed: boolean }) => void replayed.push(end.replayed);
  const { payment: paid } = await payments.createPayment(request, { requestId: newRequestId(), onEnd });
  expect(paid?.orderId).toBe(request.orderId);
  expect(await paymentsOf(request.orderId)).toBe(1);
  // Told by the record, where the first attempt had paid.
  expect(replayed).toEqual([when === 'after']);
  const keys = proxy.streams.map((headers) => headers['request-id']);
  expect([keys.length, new Set(keys).size]).toEqual([2, 1]);
});

test.each(cases.filter(({ name }) => name !== 'RST_STREAM REFUSED_STREAM'))(
  '$name $when the server has seen it: a keyless call is sent once',
  async ({ when, fault }) => {
    const { payments, proxy } = await connectThrough([{ when, fault }], { timeoutMs: 500, attemptTimeoutMs: 500 });
    const error = await failureOf(payments.createPayment(payment()));
    expect(proxy.streams).toHaveLength(1);
    expect(error).toMatchObject({ why: 'no_request_id', attempts: 1, outcomeUnknown: true, requestId: undefined });
    expect(error.details).toMatch(
      /^retry refused: no request-id\. Send metadata request-id with \/payments\.v1\.PaymentsService\/CreatePayment/,
    );
  },
);

test('a stream that was refused before the server looked at it is resent by the channel, not by the client', async () => {
  const refused = FAULTS['RST_STREAM REFUSED_STREAM'];
  if (refused === undefined) throw new Error('no such fault');
  const { payments, proxy } = await connectThrough([{ when: 'before', fault: refused }]);
  const error = await failureOf(payments.createPayment(payment()));
  expect(error).toMatchObject({ code: status.INVALID_ARGUMENT, why: 'answer', attempts: 1, outcomeUnknown: false });
  expect(proxy.streams).toHaveLength(2);
});

describe('an adapter whose answer is lost', () => {
  const lost: FaultyStream = { when: 'after', fault: (stream) => stream.session?.destroy() };

  /** What a tool gives to an agent: all that it needs is in the text. */
  const asText = ({ message, outcomeUnknown, requestId }: IdempotencyError): string =>
    JSON.stringify({ message, outcomeUnknown, requestId });

  test('gives the agent the key, and the agent that comes again with it gets the recorded answer', async () => {
    const { payments } = await connectThrough([lost], { maxAttempts: 1 });
    const [request, requestId] = [payment(), newRequestId()];
    const told = asText(await failureOf(payments.createPayment(request, { requestId })));
    expect(told).toMatch(
      /gave up after 1 attempt: no attempts left; the outcome is unknown; .* with the same request-id/,
    );
    const body = JSON.parse(told) as { readonly outcomeUnknown: boolean; readonly requestId: string };
    expect(body).toMatchObject({ outcomeUnknown: true, requestId });
    const replayed: boolean[] = [];
    await payments.createPayment(request, { requestId: body.requestId, onEnd: (end) => replayed.push(end.replayed) });
    expect(replayed).toEqual([true]);
    expect(await paymentsOf(request.orderId)).toBe(1);
  });

  test('with a new key is stopped by the rule of the business alone', async () => {
    const { payments } = await connectThrough([lost], { maxAttempts: 1 });
    const request = payment();
    await failureOf(payments.createPayment(request, { requestId: newRequestId() }));
    const again = await failureOf(payments.createPayment(request, { requestId: newRequestId() }));
    expect(again).toMatchObject({ code: status.ALREADY_EXISTS, why: 'answer', outcomeUnknown: false });
    expect(await paymentsOf(request.orderId)).toBe(1);
  });
});
