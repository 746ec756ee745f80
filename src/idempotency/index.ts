/**
 * The library: what services and their callers use. Everything else in this folder is internal.
 */

// The contract of a method, from its proto.
export * from './policy';
export { loadPolicies } from './policies/descriptor-set';
export { assertServable, type ServedMethod } from './policies/assert-servable';
export { policiesFromPackageDefinition } from './policies/package-definition';
export type { PackageDefinition } from './policies/defined-methods';
export {
  type GenericDefinition,
  type GenericMethod,
  policiesFromGenericDefinitions,
} from './policies/generic-definitions';
export type { DefinitionOptions } from './policies/request-types';
export { PolicyError } from './policies/policy-error';

// Keys.
export { newRequestId } from './request-id';
export { derivedRequestId, effectKeyOf } from './derived-request-id';
export { createIntents, type Intent, type IntentOutcome, type Intents } from './intents/intents';
export type { IntentClient, IntentOptions } from './intents/intent-options';
export { INTENT_TABLE_SQL } from './intents/intent-table';
export { OpenTransactionError } from './intents/open-transaction-error';

// Refusals and errors.
export * from './errors';
export { type ErrorDetails, readErrorDetails } from './wire/error-details';
export { EXPIRES_AT, REPLAYED, REQUEST_ID } from './wire/metadata';

// The server side.
export { isClientVersion, MOST_CLIENT_VERSIONS } from './server/client-version';
export { type Idempotency, type IdempotencyOptions, createIdempotency } from './server/idempotency';
export { type Attempt, type CompleteOptions, CompletionFailedError, type PhaseOptions } from './server/attempt';
export type { Completer } from './server/completer';
export type { CompleterOptions } from './server/completer-options';
export type { EffectContext } from './server/steps/effect-context';
export { UnfinishedStatementError } from './server/sealed-transaction';
export type { CallIdentity, Principal } from './server/principal';
export { createRequestsService, type RequestsServiceOptions } from './server/requests-service';
export type { Handler, MethodHandler, Rebuild, RebuildContext, RebuildingHandler } from './server/handler';
export type { UnaryHandlers } from './server/service';

// The client side.
// Of the grpc-js that this package uses: a channel takes no credentials, and a call no metadata, of another copy.
export { credentials, Metadata } from '@grpc/grpc-js';
export { createClientInterceptor } from './client/interceptor';
export { CHANNEL_OPTIONS, safeChannelOptions } from './client/channel-options';
export type { ClientOptions, MethodSettings } from './client/client-options';
export { DEFAULT_TIMEOUT_MS } from './client/client-options';
export type { CallEnd } from './client/call-end';
export type { CallFailure, FailureReason } from './client/call-failure';
export { IdempotencyError, readCallFailure } from './client/idempotency-error';
export { createRetryBudget, type RetryBudget, type RetryBudgetOptions } from './client/retry-budget';
export type { CallSettings } from './client/typed-call';
export { type AnswerWithTrailers, type PromiseMethod, withTrailers } from './client/with-trailers';
export {
  createPromiseClient,
  type PromiseClient,
  type MethodShape,
  type PromiseClientOptions,
  type ServiceShape,
} from './client/typed-client';

// What became of a key, asked from outside.
export { RequestsServiceService, RequestState } from '../gen/proto/idempotency/v1/requests';

// The record of keys in Postgres.
export { UnusableDatabaseError } from './store/check-database';
export { type PostgresStoreOptions, openPostgresStore } from './store/postgres-store';
export type { SqlClient, TransactionClient, TransactionOptions } from './store/database';
export { SENT_WITH_COMMIT } from './store/sql/fence';
export type { IdempotencyStore, IsolationLevel, RecordState, RequestStatus } from './store/store';
export { type KeptRequest, readRequestStatus } from './request-status';
export * from './store/operator';
export * from './store/operator-changes';
export type { RecordedStep } from './store/operator-steps';
export { createDays } from './store/days';
export { createDaysIfAllowed, observeRetention, type RetentionOptions, runRetention } from './store/retention';
export type { DayToExport } from './store/retention-drop';
export type * from './store/retention-events';

// What happens, for metrics and logs.
export * from './events';
