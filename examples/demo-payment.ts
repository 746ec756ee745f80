import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import type { CreatePaymentResponse, PaymentsServiceClient } from '../src/gen/proto/payments/v1/payments';
import { readErrorDetails, REPLAYED, REQUEST_ID } from '../src/idempotency/index';

/** What a customer wants paid. */
export interface Intent {
  readonly requestId: string;
  readonly orderId: string;
  readonly amountMinor: bigint;
}

/** One attempt, as it ended. */
export interface Attempt {
  /** `paid`, `replayed`, the reason of a refusal, or the status code where nobody gave a reason. */
  readonly outcome: string;
  /** When the server asks to come again, milliseconds. */
  readonly retryAfterMs: number | undefined;
}

/** Sends one attempt, without any retry. */
export function payOnce(client: PaymentsServiceClient, { requestId, orderId, amountMinor }: Intent): Promise<Attempt> {
  const metadata = new Metadata();
  metadata.set(REQUEST_ID, requestId);
  const request = { orderId, amountMinor, currency: 'EUR', paymentMethod: 'tok_visa', metadata: {} };
  return new Promise((resolve) => {
    let failure: ServiceError | null = null;
    const onAnswer = (error: ServiceError | null, _response: CreatePaymentResponse): void => {
      failure = error;
    };
    client
      .createPayment(request, metadata, { deadline: Date.now() + 10_000 }, onAnswer)
      .on('status', ({ code, metadata: trailers }) => {
        const { reason, retryDelayMs } = readErrorDetails(trailers);
        const success = trailers.get(REPLAYED).length > 0 ? 'replayed' : 'paid';
        const outcome = failure === null ? success : (reason ?? status[code]);
        resolve({ outcome, retryAfterMs: retryDelayMs });
      });
  });
}
