import { randomUUID } from 'node:crypto';
import { credentials, InterceptingCall, Metadata, status } from '@grpc/grpc-js';
import { type CallEnd, createPromiseClient, loadPolicies, newRequestId } from '../../src/idempotency/index';
import { createPaymentsClient, type PaymentsClient } from '../../src/payments/payments-client';
import { type ForeignServer, foreignDescriptorSet, ShelfService, startForeignServer } from '../support/foreign-service';
import { metadataOf } from '../support/scripted-server';
import { useService } from '../support/use-service';

const insecure = credentials.createInsecure();

describe('how a payment call ended', () => {
  const used = useService();
  let payments: PaymentsClient;

  beforeAll(() => {
    payments = createPaymentsClient(`127.0.0.1:${used.service.grpcPort}`, { credentials: insecure });
  });

  afterAll(() => payments.close());

  const payment = () => ({
    ...{ orderId: randomUUID(), amountMinor: 1250n, currency: 'EUR', paymentMethod: 'tok_visa', metadata: {} },
  });

  it('says of a first answer that it is none of an earlier attempt, of the next that it is, and until when', async () => {
    const [request, requestId] = [payment(), newRequestId()];
    const ends: CallEnd[] = [];
    const pay = () => payments.createPayment(request, { requestId, onEnd: (end) => ends.push(end) });
    const first = await pay();
    const second = await pay();

    expect(second).toEqual(first);
    expect(ends).toMatchObject([
      { replayed: false, attempts: 1 },
      { replayed: true, attempts: 1 },
    ]);
    const [row] = await used.database.rows<{ kept: number }>(
      `SELECT floor(extract(epoch FROM created_at + interval '7 days') * 1000)::float8 AS kept FROM idempotency_record
       WHERE request_id = $1`,
      [requestId],
    );
    expect(ends.map(({ expiresAt }) => expiresAt?.getTime())).toEqual([row?.kept, row?.kept]);
    expect(ends[1]?.trailers.get('idempotent-replayed')).toEqual(['true']);
  });

  it('says of a refusal that it is a replay', async () => {
    const request = payment();
    await payments.createPayment(request, { requestId: newRequestId() });
    const requestId = newRequestId();
    const replayed: boolean[] = [];
    for (let time = 1; time <= 2; time += 1) {
      const refused = payments.createPayment(request, { requestId, onEnd: (end) => replayed.push(end.replayed) });
      await expect(refused).rejects.toMatchObject({ code: status.ALREADY_EXISTS });
    }
    expect(replayed).toEqual([false, true]);
  });

  it('is told before the promise settles, and has no expiry where nothing is recorded', async () => {
    const told: (CallEnd | string)[] = [];
    await payments
      .listPayments({ pageSize: 1, pageToken: '', orderId: '' }, { onEnd: (end) => told.push(end) })
      .then(() => told.push('settled'));
    expect(told).toEqual([expect.objectContaining({ replayed: false, expiresAt: undefined, attempts: 1 }), 'settled']);
  });
});

describe('the client of a foreign service', () => {
  const policies = loadPolicies(foreignDescriptorSet());
  const book = { title: 'Kürk Mantolu Madonna', copies: 9_007_199_254_740_993n };
  let server: ForeignServer;
  let failures: number;
  let trailers: Metadata;

  beforeAll(async () => {
    server = await startForeignServer((call, answer) => {
      failures -= 1;
      if (failures >= 0) answer({ code: status.UNAVAILABLE, details: 'down' });
      else answer(null, { shelf: call.request.copies === book.copies ? 7 : 0 }, trailers);
    });
  });

  beforeEach(() => {
    failures = 0;
    trailers = new Metadata();
  });

  afterAll(() => server.close());

  const withClient = async <T>(
    work: (shelf: ReturnType<typeof connect>) => Promise<T>,
    change: Partial<Parameters<typeof connect>[0]> = {},
  ): Promise<T> => {
    const shelf = connect(change);
    try {
      return await work(shelf);
    } finally {
      shelf.close();
    }
  };
  const connect = (change: { interceptors?: readonly (typeof answerAtOnce)[] }) =>
    createPromiseClient(ShelfService, server.address, {
      ...{ credentials: insecure, policies, initialBackoffMs: 1, ...change },
    });

  /** An interceptor that never asks the server, such as a cache. */
  const answerAtOnce = (): InterceptingCall =>
    new InterceptingCall({
      start: (_, listener) => {
        listener?.onReceiveMessage?.({ shelf: 1 });
        listener?.onReceiveStatus?.({ code: status.OK, details: '', metadata: new Metadata() });
      },
      sendMessage: () => undefined,
      sendMessageWithContext: () => undefined,
      halfClose: () => undefined,
      startRead: () => undefined,
      cancelWithStatus: () => undefined,
      getPeer: () => '',
      getAuthContext: () => null,
    });

  it('sends what a key or the level allows as often as it takes, and says how often that was', async () => {
    await withClient(async (shelf) => {
      const ends: number[] = [];
      const onEnd = ({ attempts }: CallEnd) => void ends.push(attempts);
      failures = 2;
      expect(await shelf.putBook(book, { requestId: newRequestId(), onEnd })).toEqual({ shelf: 7 });
      failures = 1;
      expect(await shelf.findBook(book, { onEnd })).toEqual({ shelf: 7 });
      failures = 1;
      await expect(shelf.putBook(book, { onEnd })).rejects.toMatchObject({ code: status.UNAVAILABLE });
      expect(ends).toEqual([3, 2, 1]);
    });
  });

  it('sends nothing when the call was cancelled in the tick that made it, and tells no attempt', async () => {
    await withClient(async (shelf) => {
      const arrived = server.arrivals.length;
      const cancel = new AbortController();
      const ends: CallEnd[] = [];
      const found = shelf.findBook(book, { signal: cancel.signal, onEnd: (end) => ends.push(end) });
      cancel.abort();
      await expect(found).rejects.toMatchObject({ code: status.CANCELLED });
      expect(ends).toMatchObject([{ attempts: 0, replayed: false, expiresAt: undefined }]);
      expect(server.arrivals).toHaveLength(arrived);
    });
  });

  test.each(['tomorrow', ''])('takes an expiry of %j, which is no time, for none', async (expiry) => {
    await withClient(async (shelf) => {
      trailers = metadataOf({ 'idempotency-expires-at': expiry, 'idempotent-replayed': 'false' });
      const ends: CallEnd[] = [];
      await shelf.findBook(book, { onEnd: (end) => ends.push(end) });
      expect(ends).toMatchObject([{ replayed: false, expiresAt: undefined }]);
    });
  });

  it('resolves where an interceptor answers by itself, at once', async () => {
    await withClient(
      async (shelf) => {
        expect(await shelf.findBook(book)).toEqual({ shelf: 1 });
      },
      { interceptors: [answerAtOnce] },
    );
  });
});
