import { descriptorSet } from '../gen/descriptor-set';
import { ReceiptsServiceService } from '../gen/proto/receipts/v1/receipts';
import { createPromiseClient, loadPolicies, type PromiseClient, type PromiseClientOptions } from '../idempotency/index';

/** The calls of ReceiptsService as promises. */
export type ReceiptsClient = PromiseClient<typeof ReceiptsServiceService>;

/** What a receipts client needs; the policies come with the package. */
export type ReceiptsClientOptions = Omit<PromiseClientOptions, 'policies'>;

/**
 * Makes a client of ReceiptsService that retries what is safe to retry.
 *
 * @param address a gRPC target, for example `127.0.0.1:50053`
 * @throws TypeError that names each option at fault
 */
export function createReceiptsClient(address: string, options: ReceiptsClientOptions): ReceiptsClient {
  return createPromiseClient(ReceiptsServiceService, address, { ...options, policies: loadPolicies(descriptorSet) });
}
