import { descriptorSet } from '../gen/descriptor-set';
import { PaymentsServiceService } from '../gen/proto/payments/v1/payments';
import {
  createPromiseClient,
  DEFAULT_TIMEOUT_MS,
  loadPolicies,
  type PromiseClient,
  type PromiseClientOptions,
  REQUEST_ID,
} from '../idempotency/index';
import { updateAndCompare } from './update-and-compare';

/** The calls of PaymentsService as promises. */
export type PaymentsClient = PromiseClient<typeof PaymentsServiceService>;

/** What a payments client needs; the policies come with the package. */
export type PaymentsClientOptions = Omit<PromiseClientOptions, 'policies'>;

/**
 * Makes a client of PaymentsService that retries what is safe to retry. Give `createPayment` and `refundPayment` a
 * `requestId`: without one they are sent once. `updatePayment` without one compares what its first attempt may have
 * written before it says that somebody else was faster.
 *
 * @param address a gRPC target, for example `127.0.0.1:50051`
 * @throws TypeError that names each option at fault
 */
export function createPaymentsClient(address: string, options: PaymentsClientOptions): PaymentsClient {
  const policies = loadPolicies(descriptorSet);
  const client = createPromiseClient(PaymentsServiceService, address, { ...options, policies });
  const { requestIdName = REQUEST_ID } = options;
  const timeoutOf = (path: string): number =>
    options.methods?.[path]?.timeoutMs ?? options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const timeoutMs = timeoutOf(PaymentsServiceService.updatePayment.path);
  const readTimeoutMs = timeoutOf(PaymentsServiceService.getPayment.path);
  const compared = { client, timeoutMs, readTimeoutMs, requestIdName };
  return { ...client, updatePayment: (request, settings) => updateAndCompare(compared, request, settings) };
}
