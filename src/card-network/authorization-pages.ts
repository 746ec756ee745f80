import type { PrismaClient } from '../gen/prisma/client';
import type { CardNetworkAuthorizationWhereInput } from '../gen/prisma/models/CardNetworkAuthorization';
import type { ListAuthorizationsRequest, ListAuthorizationsResponse } from '../gen/proto/cardnetwork/v1/cardnetwork';
import { type FieldViolation, invalidArgument } from '../idempotency/index';
import { authorizationMessage } from './authorization-message';

const DEFAULT_SIZE = 100;
const MAX_SIZE = 1_000;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * Shows one page of an account's authorizations, oldest first. The token of a page is the id behind which it begins.
 *
 * @throws StatusError INVALID_ARGUMENT for a size out of range and a token that can't be one
 */
export async function listAuthorizations(
  prisma: PrismaClient,
  scope: string,
  request: ListAuthorizationsRequest,
): Promise<ListAuthorizationsResponse> {
  const { pageSize, pageToken } = request;
  const violations: FieldViolation[] = [];
  if (pageSize < 0 || pageSize > MAX_SIZE) {
    violations.push({ field: 'page_size', description: `expected 0 to ${MAX_SIZE}; 0 means ${DEFAULT_SIZE}` });
  }
  if (pageToken !== '' && !UUID.test(pageToken)) {
    violations.push({ field: 'page_token', description: 'expected the next_page_token of an answer to the same list' });
  }
  if (violations.length > 0) throw invalidArgument(violations);
  const size = pageSize === 0 ? DEFAULT_SIZE : pageSize;
  const found = await prisma.cardNetworkAuthorization.findMany({
    where: { scope, ...filter(request) },
    orderBy: [{ createdAt: 'asc' }, { authorizationId: 'asc' }],
    take: size + 1,
    ...(pageToken === '' ? {} : { cursor: { authorizationId: pageToken }, skip: 1 }),
  });
  const shown = found.slice(0, size);
  const refunded = await refundedMinor(
    prisma,
    shown.map(({ authorizationId }) => authorizationId),
  );
  return {
    authorizations: shown.map((row) => authorizationMessage(row, refunded.get(row.authorizationId) ?? 0n)),
    nextPageToken: found.length > size ? (shown.at(-1)?.authorizationId ?? '') : '',
  };
}

function filter({ requestId, reference, createdSince }: ListAuthorizationsRequest): CardNetworkAuthorizationWhereInput {
  const since = createdSince && new Date(Number(createdSince.seconds) * 1000 + createdSince.nanos / 1e6);
  return {
    ...(requestId === '' ? {} : { requestId }),
    ...(reference === '' ? {} : { reference }),
    ...(since === undefined ? {} : { createdAt: { gte: since } }),
  };
}

/** What was given back of authorizations, by their ids; those without refunds are left out. */
export async function refundedMinor(
  prisma: PrismaClient,
  authorizationIds: readonly string[],
): Promise<ReadonlyMap<string, bigint>> {
  const sums = await prisma.cardNetworkRefund.groupBy({
    by: ['authorizationId'],
    where: { authorizationId: { in: [...authorizationIds] } },
    _sum: { amountMinor: true },
  });
  return new Map(sums.map(({ authorizationId, _sum }) => [authorizationId, _sum.amountMinor ?? 0n]));
}
