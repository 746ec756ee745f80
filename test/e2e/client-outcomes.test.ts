import { credentials, Server, status } from '@grpc/grpc-js';
import { PaymentsServiceService } from '../../src/gen/proto/payments/v1/payments';
import { newRequestId, readErrorDetails } from '../../src/idempotency/index';
import { createPaymentsClient, type PaymentsClient } from '../../src/payments/payments-client';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { datedKey } from '../support/claim-requests';
import { failureOf } from '../support/failure-of';
import { newPayment } from '../support/new-payment';
import { metadataOf } from '../support/scripted-server';

const DAY_MS = 24 * 3_600_000;
/** Less than the answer to a payment, and more than its request. */
const LONGEST_ANSWER_BYTES = 64;

let service: AttemptService;
let payments: PaymentsClient;

beforeAll(async () => {
  service = await startAttemptService({
    assemble: (idempotency, handlers) => {
      const options = { 'grpc.max_send_message_length': LONGEST_ANSWER_BYTES };
      const server = new Server({ ...options, interceptors: [idempotency.interceptor] });
      idempotency.addService(server, PaymentsServiceService, handlers);
      return server;
    },
  });
  payments = createPaymentsClient(`127.0.0.1:${service.port}`, { credentials: credentials.createInsecure() });
});

beforeEach(async () => {
  await service.database.rows('TRUNCATE payments, idempotency_record');
  service.handle({ createPayment: payAndComplete });
});

afterAll(async () => {
  payments.close();
  await service.stop();
});

/** Half-done for good: somebody came before, and nobody knows how far. */
async function park(): Promise<void> {
  await service.database.rows(`UPDATE idempotency_record SET state = 'parked', completed_at = NULL, status_code = NULL,
    status_message = NULL, response = NULL, trailers = NULL`);
}

describe('may it be done anew, with another key?', () => {
  it('no: it was done, and the server can not send its answer, nor tell it again', async () => {
    const [request, requestId] = [newPayment(), newRequestId()];
    for (let call = 1; call <= 2; call += 1) {
      const error = await failureOf(payments.createPayment(request, { requestId }));
      expect(error).toMatchObject({ code: status.RESOURCE_EXHAUSTED, outcomeUnknown: true, attempts: 1, requestId });
      expect(error.details).toMatch(/^Sent message larger than max/);
    }
    expect(await service.database.count('payments')).toBe(1);
  });

  it.each<[string, string, () => Promise<void>]>([
    ['its answer was removed', 'REQUEST_ID_EXPIRED', () => change("state = 'expired'")],
    ['it is parked', 'REQUEST_PARKED', park],
  ])('no: %s', async (_, reason, arrange) => {
    const [request, requestId] = [newPayment(), newRequestId()];
    await failureOf(payments.createPayment(request, { requestId }));
    await arrange();
    const error = await failureOf(payments.createPayment(request, { requestId }));
    expect(readErrorDetails(error.metadata).reason).toBe(reason);
    expect(error).toMatchObject({ why: 'answer', outcomeUnknown: true, retriable: false, requestId });
    expect(await service.database.count('payments')).toBe(1);
  });

  it('no: its key was sent with another content, which was paid', async () => {
    const [request, requestId] = [newPayment(), newRequestId()];
    await failureOf(payments.createPayment(request, { requestId }));
    const corrected = { ...request, amountMinor: request.amountMinor + 1n };
    const error = await failureOf(payments.createPayment(corrected, { requestId }));
    expect(readErrorDetails(error.metadata).reason).toBe('REQUEST_ID_REUSED');
    expect(error).toMatchObject({ why: 'answer', outcomeUnknown: true, retriable: false, requestId });
    expect(await service.database.count('payments')).toBe(1);
  });

  it('no: its key is so old that its record may be gone', async () => {
    const requestId = datedKey(Date.now() - 2 * DAY_MS);
    const error = await failureOf(payments.createPayment(newPayment(), { requestId }));
    expect(readErrorDetails(error.metadata).reason).toBe('REQUEST_ID_EXPIRED');
    expect(error).toMatchObject({ why: 'answer', outcomeUnknown: true, requestId });
  });

  it('no: it has no key, and somebody on the way has resent it', async () => {
    const metadata = metadataOf({ 'x-envoy-attempt-count': '2' });
    const error = await failureOf(payments.createPayment(newPayment(), { metadata }));
    expect(readErrorDetails(error.metadata).reason).toBe('KEYLESS_RETRY');
    expect(error).toMatchObject({ why: 'answer', outcomeUnknown: true, requestId: undefined });
  });

  it('yes: it was refused for what was missing', async () => {
    const error = await failureOf(payments.createPayment(newPayment()));
    expect(readErrorDetails(error.metadata).reason).toBe('REQUEST_ID_MISSING');
    expect(error).toMatchObject({ why: 'answer', outcomeUnknown: false });
    expect(await service.database.count('payments')).toBe(0);
  });
});

async function change(what: string): Promise<void> {
  await service.database.rows(`UPDATE idempotency_record SET ${what}`);
}
