import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { paymentRequest } from '../support/payment-requests';
import { createStockClient, type StockClient } from '../support/stock-client';

const ATTEMPTS = 4;
const SERVICE_CONFIG = {
  methodConfig: [
    {
      name: [{ service: 'payments.v1.PaymentsService' }],
      retryPolicy: {
        ...{ maxAttempts: ATTEMPTS, initialBackoff: '0.01s', maxBackoff: '0.01s', backoffMultiplier: 1 },
        retryableStatusCodes: ['UNAVAILABLE', 'ABORTED'],
      },
    },
  ],
};

// Case J1: a header before one of the errors, or one that is no Trailers-Only, and such a client gives up.
describe('a stock client whose policy allows four attempts, refused three times', () => {
  let service: AttemptService;
  let client: StockClient;
  /** How many of the next claims find somebody at work. */
  let busy = 0;
  /** The keys that claims were asked for, one for each attempt that arrived. */
  const keys: string[] = [];

  beforeAll(async () => {
    service = await startAttemptService({
      wrapStore: (store) => ({
        ...store,
        claim: (request) => {
          keys.push(request.key.text);
          busy -= 1;
          if (busy < 0) return store.claim(request);
          return Promise.resolve({ kind: 'in_progress', leaseLeftMs: 100, ageMs: 0, resource: undefined });
        },
      }),
    });
    client = createStockClient(service.port, { 'grpc.service_config': JSON.stringify(SERVICE_CONFIG) });
  });

  beforeEach(async () => {
    await service.database.rows('TRUNCATE payments, idempotency_record');
    keys.length = 0;
    busy = 0;
  });

  afterAll(async () => {
    client.close();
    await service.stop();
  });

  const pay = async (requestId: string) => ({
    answer: await client.call({ method: 'CreatePayment', request: paymentRequest(), requestId }),
    admitted: service.events.filter(({ type }) => type === 'admitted').length,
  });

  const expectPaidAtTheFourth = async ({ answer, admitted }: Awaited<ReturnType<typeof pay>>, requestId: string) => {
    expect(answer.code).toBe(status.OK);
    expect(answer.trailers.get('idempotent-replayed')).toEqual([]);
    expect(keys).toEqual(Array.from({ length: ATTEMPTS }, () => requestId));
    expect(admitted).toBe(ATTEMPTS);
    expect(await service.database.count('payments')).toBe(1);
    expect(await service.database.count("idempotency_record WHERE state = 'completed'")).toBe(1);
  };

  it('since a handler is UNAVAILABLE, pays once, at the fourth, with one key', async () => {
    const [requestId, previousAttempts]: [string, string[]] = [randomUUID(), []];
    service.handle({
      createPayment: (request, attempt) => {
        previousAttempts.push(attempt.metadata.get('grpc-previous-rpc-attempts').join());
        if (previousAttempts.length < ATTEMPTS) throw new StatusError(status.UNAVAILABLE, 'the bank is closed');
        return payAndComplete(request, attempt);
      },
    });
    await expectPaidAtTheFourth(await pay(requestId), requestId);
    expect(previousAttempts).toEqual(['', '1', '2', '3']);
  });

  it('since somebody is at work under its key, pays once, at the fourth, with one key', async () => {
    const requestId = randomUUID();
    service.handle({ createPayment: payAndComplete });
    busy = ATTEMPTS - 1;
    await expectPaidAtTheFourth(await pay(requestId), requestId);
    const outcomes = service.events.flatMap((event) => (event.type === 'admitted' ? [event.outcome] : []));
    expect(outcomes).toEqual(['in_progress', 'in_progress', 'in_progress', 'claimed']);
  });

  it('and once more, is told the refusal', async () => {
    service.handle({ createPayment: () => Promise.reject(new StatusError(status.UNAVAILABLE, 'the bank is closed')) });
    const { answer } = await pay(randomUUID());
    expect(answer).toMatchObject({ code: status.UNAVAILABLE, details: 'the bank is closed', trailersOnly: true });
    expect(keys).toHaveLength(ATTEMPTS);
    expect(await service.database.count('payments')).toBe(0);
  });
});
