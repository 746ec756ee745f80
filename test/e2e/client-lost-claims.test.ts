import { credentials } from '@grpc/grpc-js';
import { type CallEnd, newRequestId } from '../../src/idempotency/index';
import { INSERT_CLAIM } from '../../src/idempotency/store/sql/claim';
import { LOOK_UP } from '../../src/idempotency/store/sql/look-up';
import { createPaymentsClient, type PaymentsClient } from '../../src/payments/payments-client';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { type CommitProxy, startCommitProxy } from '../support/commit-proxy';
import { newPayment } from '../support/new-payment';

jest.setTimeout(60_000);

/** So long that whoever waited for its end would be told apart from whoever did not, on a slow machine too. */
const LEASE_MS = 10_000;

// Case B3, as our own client sees it.
describe('a claim that was committed and whose answer is lost', () => {
  let proxy: CommitProxy;
  let service: AttemptService;
  let payments: PaymentsClient;
  let runs = 0;

  beforeAll(async () => {
    service = await startAttemptService({
      policy: { leaseMs: LEASE_MS },
      route: async ({ connectionString }) => (proxy = await startCommitProxy(connectionString)).connectionString,
    });
    payments = createPaymentsClient(`127.0.0.1:${service.port}`, { credentials: credentials.createInsecure() });
  });

  beforeEach(async () => {
    await service.database.rows('TRUNCATE payments, idempotency_record');
    runs = 0;
    service.handle({
      createPayment: (request, attempt) => {
        runs += 1;
        return payAndComplete(request, attempt);
      },
    });
  });

  afterAll(async () => {
    payments.close();
    await service.stop();
    proxy.close();
  });

  /** Pays within three leases, as a client does that is set up as usual. */
  const pay = async (): Promise<CallEnd & { readonly tookMs: number }> => {
    const [startedAt, ends]: [number, CallEnd[]] = [performance.now(), []];
    const onEnd = (end: CallEnd): void => void ends.push(end);
    await payments.createPayment(newPayment(), { requestId: newRequestId(), timeoutMs: 3 * LEASE_MS, onEnd });
    const tookMs = performance.now() - startedAt;
    const [end] = ends;
    if (end === undefined) throw new Error('it has not ended');
    return { ...end, tookMs };
  };

  const expectPaidOnce = async ({ replayed, tookMs }: Awaited<ReturnType<typeof pay>>): Promise<void> => {
    expect(replayed).toBe(false);
    expect(tookMs).toBeLessThan(LEASE_MS);
    expect(runs).toBe(1);
    expect(await service.database.count('payments')).toBe(1);
    const records = await service.database.rows('SELECT state, attempt FROM idempotency_record');
    // No takeover: nobody waited for the end of a lease.
    expect(records).toEqual([{ state: 'completed', attempt: 1 }]);
  };

  it('is recognised by the process that made it: the caller is paid for at its first attempt', async () => {
    const cut = proxy.on(INSERT_CLAIM, 'cut after');
    const end = await pay();
    expect([cut.times(), end.attempts]).toEqual([1, 1]);
    await expectPaidOnce(end);
  });

  it('and can not be looked up either: the caller comes again by itself, and does not wait for the lease', async () => {
    const cuts = [proxy.on(INSERT_CLAIM, 'cut after', 5), proxy.on(LOOK_UP, 'cut before', 5)];
    const end = await pay();
    expect(cuts[0]?.times()).toBe(5);
    expect(end.attempts).toBeGreaterThanOrEqual(2);
    await expectPaidOnce(end);
    for (const cut of cuts) cut.end();
  });
});
