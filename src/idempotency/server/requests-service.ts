import type { Timestamp } from '../../gen/proto/google/protobuf/timestamp';
import {
  GetRequestResponse,
  type GetRequestRequest,
  RequestState,
  type RequestsServiceService,
} from '../../gen/proto/idempotency/v1/requests';
import { invalidArgument } from '../errors';
import { parseKey } from '../key';
import type { MethodPolicy } from '../policy';
import type { IdempotencyStore, RequestStatus, StatusSubject } from '../store/store';
import { checkRequestsServiceOptions } from './check-options';
import type { UnaryHandlers } from './service';

/** What the service works with. */
export interface RequestsServiceOptions<Tx> {
  /** The methods that can be asked about: those the store was opened with. */
  readonly policies: readonly MethodPolicy[];
  /** From `openPostgresStore`. */
  readonly store: Pick<IdempotencyStore<Tx>, 'lookUpStatus'>;
}

/**
 * The handlers of idempotency.v1.RequestsService, for `idempotency.addService`: they tell an account what became of its
 * own keys (design 3.2). A key of another account is as unknown as one that never was.
 *
 * @throws TypeError that names each option at fault
 */
export function createRequestsService<Tx>(
  options: RequestsServiceOptions<Tx>,
): UnaryHandlers<RequestsServiceService, Tx> {
  checkRequestsServiceOptions(options);
  const { policies, store } = options;
  const byPath = new Map(policies.map((policy) => [policy.path, policy]));
  return {
    getRequest: async (request, { scope }) =>
      statusMessage(await store.lookUpStatus({ ...readSubject(byPath, request), scope })),
  };
}

/** @throws StatusError INVALID_ARGUMENT that says which methods there are, or what the method's keys look like */
function readSubject(
  policies: ReadonlyMap<string, MethodPolicy>,
  { method, requestId }: GetRequestRequest,
): Omit<StatusSubject, 'scope'> {
  const policy = policies.get(method);
  if (policy === undefined) {
    const description = `expected a method that takes keys: ${[...policies.keys()].join(', ')}`;
    throw invalidArgument([{ field: 'method', description }]);
  }
  const reading = parseKey([requestId], policy.keyFormat);
  switch (reading.kind) {
    case 'key':
      return { policy, key: reading.key };
    case 'missing':
      throw invalidArgument([{ field: 'request_id', description: 'expected the key that the request carried' }]);
    case 'malformed':
      throw invalidArgument([{ field: 'request_id', description: reading.description }]);
  }
}

function statusMessage(found: RequestStatus): GetRequestResponse {
  switch (found.kind) {
    case 'unknown':
      return GetRequestResponse.create({ state: RequestState.REQUEST_STATE_UNKNOWN });
    case 'in_progress':
      return GetRequestResponse.create({ state: RequestState.REQUEST_STATE_IN_PROGRESS, ...known(found) });
    case 'completed':
      return GetRequestResponse.create({
        state: RequestState.REQUEST_STATE_COMPLETED,
        ...known(found),
        statusCode: found.code,
        statusMessage: found.message,
        completeTime: timestamp(found.completedAt),
        expireTime: timestamp(found.expiresAt),
      });
    case 'expired':
      return GetRequestResponse.create({ state: RequestState.REQUEST_STATE_EXPIRED, ...known(found) });
    case 'parked':
      return GetRequestResponse.create({ state: RequestState.REQUEST_STATE_PARKED, ...known(found) });
  }
}

function known({ since, resource }: { readonly since: Date | undefined; readonly resource: string | undefined }) {
  return { claimTime: since && timestamp(since), resource: resource ?? '' };
}

function timestamp(date: Date): Timestamp {
  const ms = date.getTime();
  return { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 };
}
