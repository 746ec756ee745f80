/**
 * The library: what services and their callers use. Everything else in this folder is internal.
 */

// The contract of a method, from its proto.
export * from './policy';
export { loadPolicies, PolicyError } from './policy-registry';

// Keys.
export { newRequestId } from './request-id';

// Refusals and errors.
export * from './errors';
export { type ErrorDetails, readErrorDetails } from './wire/error-details';
export { EXPIRES_AT, REPLAYED, REQUEST_ID } from './wire/metadata';

// The server side.
export { type Idempotency, type IdempotencyOptions, createIdempotency } from './server/idempotency';
export { type Attempt, CompletionFailedError } from './server/attempt';
export { UnfinishedStatementError } from './server/sealed-transaction';
export type { CallIdentity, Principal } from './server/principal';
export { createRequestsService, type RequestsServiceOptions } from './server/requests-service';
export type { Handler } from './server/run-once';
export type { UnaryHandlers } from './server/service';

// The client side.
// Of the grpc-js that this package uses: a channel takes no credentials, and a call no metadata, of another copy.
export { credentials, Metadata } from '@grpc/grpc-js';
export { createClientInterceptor } from './client/interceptor';
export { CHANNEL_OPTIONS } from './client/channel-options';
export type { ClientOptions } from './client/client-options';
export { DEFAULT_TIMEOUT_MS } from './client/client-options';
export type { CallEnd } from './client/call-end';
export {
  type CallSettings,
  createPromiseClient,
  type PromiseClient,
  type MethodShape,
  type PromiseClientOptions,
  type ServiceShape,
} from './client/typed-client';

// What became of a key, asked from outside.
export { RequestsServiceService, RequestState } from '../gen/proto/idempotency/v1/requests';

// The record of keys in Postgres.
export { type PostgresStoreOptions, openPostgresStore } from './store/postgres-store';
export type { SqlClient, TransactionClient } from './store/database';
export type { IdempotencyStore } from './store/store';
export { createDays } from './store/days';

// What happens, for metrics and logs.
export * from './events';
