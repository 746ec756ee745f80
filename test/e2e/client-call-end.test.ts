import { status } from '@grpc/grpc-js';
import { type CallEnd, newRequestId } from '../../src/idempotency/index';
import { newPayment } from '../support/new-payment';
import { metadataOf } from '../support/scripted-server';
import { usePaymentsClient } from '../support/use-payments-client';
import { BOOK, type ShelfInUse, useShelf } from '../support/use-shelf';

describe('how a payment call ended', () => {
  const used = usePaymentsClient();

  it('says of a first answer that it is none of an earlier attempt, of the next that it is, and until when', async () => {
    const [request, requestId] = [newPayment(), newRequestId()];
    const ends: CallEnd[] = [];
    const pay = () => used.payments.createPayment(request, { requestId, onEnd: (end) => ends.push(end) });
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
    const request = newPayment();
    await used.payments.createPayment(request, { requestId: newRequestId() });
    const requestId = newRequestId();
    const replayed: boolean[] = [];
    for (let time = 1; time <= 2; time += 1) {
      const refused = used.payments.createPayment(request, { requestId, onEnd: (end) => replayed.push(end.replayed) });
      await expect(refused).rejects.toMatchObject({ code: status.ALREADY_EXISTS });
    }
    expect(replayed).toEqual([false, true]);
  });

  it('is told before the promise settles, and has no expiry where nothing is recorded', async () => {
    const told: (CallEnd | string)[] = [];
    await used.payments
      .listPayments({ pageSize: 1, pageToken: '', orderId: '' }, { onEnd: (end) => told.push(end) })
      .then(() => told.push('settled'));
    expect(told).toEqual([expect.objectContaining({ replayed: false, expiresAt: undefined, attempts: 1 }), 'settled']);
  });
});

describe('the client of a foreign service', () => {
  const used = useShelf();

  const withClient = async (work: (shelf: ReturnType<ShelfInUse['connect']>) => Promise<void>): Promise<void> => {
    const shelf = used.connect();
    try {
      await work(shelf);
    } finally {
      shelf.close();
    }
  };

  it('sends what a key or the level allows as often as it takes, and says how often that was', async () => {
    await withClient(async (shelf) => {
      const ends: number[] = [];
      const onEnd = ({ attempts }: CallEnd) => void ends.push(attempts);
      used.failures = 2;
      expect(await shelf.putBook(BOOK, { requestId: newRequestId(), onEnd })).toEqual({ shelf: 7 });
      used.failures = 1;
      expect(await shelf.findBook(BOOK, { onEnd })).toEqual({ shelf: 7 });
      used.failures = 1;
      await expect(shelf.putBook(BOOK, { onEnd })).rejects.toMatchObject({ code: status.UNAVAILABLE });
      expect(ends).toEqual([3, 2, 1]);
    });
  });

  it('sends nothing when the call was cancelled in the tick that made it, and tells no attempt', async () => {
    await withClient(async (shelf) => {
      const arrived = used.server.arrivals.length;
      const cancel = new AbortController();
      const ends: CallEnd[] = [];
      const found = shelf.findBook(BOOK, { signal: cancel.signal, onEnd: (end) => ends.push(end) });
      cancel.abort();
      await expect(found).rejects.toMatchObject({ code: status.CANCELLED });
      expect(ends).toMatchObject([{ attempts: 0, replayed: false, expiresAt: undefined }]);
      expect(used.server.arrivals).toHaveLength(arrived);
    });
  });

  test.each(['tomorrow', ''])('takes an expiry of %j, which is no time, for none', async (expiry) => {
    await withClient(async (shelf) => {
      used.trailers = metadataOf({ 'idempotency-expires-at': expiry, 'idempotent-replayed': 'false' });
      const ends: CallEnd[] = [];
      await shelf.findBook(BOOK, { onEnd: (end) => ends.push(end) });
      expect(ends).toMatchObject([{ replayed: false, expiresAt: undefined }]);
    });
  });
});
