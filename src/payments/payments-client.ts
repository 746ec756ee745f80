import { descriptorSet } from '../gen/descriptor-set';
import { PaymentsServiceService } from '../gen/proto/payments/v1/payments';
import { createPromiseClient, loadPolicies, type PromiseClient, type PromiseClientOptions } from '../idempotency/index';

/** The calls of PaymentsService as promises. */
export type PaymentsClient = PromiseClient<typeof PaymentsServiceService>;

/** What a payments client needs; the policies come with the package. */
export type PaymentsClientOptions = Omit<PromiseClientOptions, 'policies'>;

/**
 * Makes a client of PaymentsService that retries what is safe to retry. Give `createPayment` and `refundPayment` a
 * `requestId`: without one they are sent once.
 *
 * @param address a gRPC target, for example `127.0.0.1:50051`
 * @throws TypeError that names each option at fault
 */
export function createPaymentsClient(address: string, options: PaymentsClientOptions): PaymentsClient {
  return createPromiseClient(PaymentsServiceService, address, { ...options, policies: loadPolicies(descriptorSet) });
}
