import { isDeepStrictEqual } from 'node:util';
import { Metadata } from '@grpc/grpc-js';
import type {
  PaymentsServiceService,
  UpdatePaymentRequest,
  UpdatePaymentResponse,
} from '../gen/proto/payments/v1/payments';
import { type CallSettings, type PromiseClient, readErrorDetails } from '../idempotency/index';
import { ETAG_MISMATCH, PAYMENTS_DOMAIN } from './domain';

/** What an update is sent with. */
export interface UpdateOptions {
  readonly client: Pick<PromiseClient<PaymentsServiceService>, 'updatePayment' | 'getPayment'>;
  /** Time for the update and the comparison where the call says nothing, milliseconds. */
  readonly timeoutMs: number;
  /** Most time for the read alone, milliseconds: what the client allows `GetPayment`. */
  readonly readTimeoutMs: number;
  /** Metadata name of the key. */
  readonly requestIdName: string;
}

/**
 * Updates a payment. Where a retry without a key finds the payment changed since its etag was read, the change may be our
 * own first attempt, whose answer was lost (design 3.2): so the payment is read, and if it holds what was to be written,
 * the wish holds, whoever wrote it. The first attempt is never doubted, and with a key a retry is replayed instead.
 *
 * @throws ServiceError of the update; one of reason `ETAG_MISMATCH` has the error of a comparison that failed as its cause
 */
export async function updateAndCompare(
  { client, timeoutMs, readTimeoutMs, requestIdName }: UpdateOptions,
  request: UpdatePaymentRequest,
  settings: CallSettings = {},
): Promise<UpdatePaymentResponse> {
  // Which the client refuses; in a copy there would be nothing left to refuse.
  if (!isObject(settings)) return client.updatePayment(request, settings);
  const endsAt = performance.now() + (settings.timeoutMs ?? timeoutMs);
  // The caller may go on working with the request.
  const { paymentId, etag, metadata } = { ...request, metadata: { ...request.metadata } };
  const hasKey = settings.requestId !== undefined || (settings.metadata?.get(requestIdName) ?? []).length > 0;
  let attempts = 0;
  const onEnd: CallSettings['onEnd'] = (end) => {
    attempts = end.attempts;
    settings.onEnd?.(end);
  };
  try {
    return await client.updatePayment(request, { ...settings, onEnd });
  } catch (error) {
    const remainingMs = endsAt - performance.now();
    if (hasKey || attempts < 2 || remainingMs <= 0 || !isEtagMismatch(error)) throw error;
    const read = {
      metadata: settings.metadata,
      signal: settings.signal,
      timeoutMs: Math.min(remainingMs, readTimeoutMs),
    };
    const { payment } = await client
      .getPayment({ paymentId }, read)
      .catch((cause: unknown) => Promise.reject(Object.assign(error, { cause })));
    // An etag as before is an old state, from a read that lags behind.
    if (payment === undefined || payment.etag === etag || !isSame(payment.metadata, metadata)) throw error;
    return { payment };
  }
}

/** Whatever its type says, a caller without a compiler gives anything. */
function isObject(settings: unknown): boolean {
  return typeof settings === 'object' && settings !== null && !(Symbol.iterator in settings);
}

function isEtagMismatch(error: unknown): error is Error {
  if (!(error instanceof Error && 'metadata' in error && error.metadata instanceof Metadata)) return false;
  const { domain, reason } = readErrorDetails(error.metadata);
  return domain === PAYMENTS_DOMAIN && reason === ETAG_MISMATCH;
}

type Notes = Readonly<Record<string, string>>;

function isSame(one: Notes, other: Notes): boolean {
  return isDeepStrictEqual(new Map(Object.entries(one)), new Map(Object.entries(other)));
}
