import type { PrismaClient } from '../gen/prisma/client';
import type { ListPaymentsRequest, ListPaymentsResponse } from '../gen/proto/payments/v1/payments';
import { type FieldViolation, invalidArgument } from '../idempotency/index';
import { listedOrderViolations } from './payment';
import { paymentMessage } from './payment-message';
import { listPayments } from './payment-repository';
import { pageToken, readPageToken } from './page-token';

const DEFAULT_SIZE = 50;
const MAX_SIZE = 500;

/**
 * Shows one page of an account's payments.
 *
 * @throws StatusError INVALID_ARGUMENT for what can't be an order, a size out of range, and a token that was not made for
 *   this list
 */
export async function listPage(
  prisma: PrismaClient,
  scope: string,
  { orderId, pageSize, pageToken: token }: ListPaymentsRequest,
): Promise<ListPaymentsResponse> {
  const listedBy = { scope, orderId };
  const after = token === '' ? undefined : readPageToken(listedBy, token);
  const violations: FieldViolation[] = [...listedOrderViolations(orderId)];
  if (pageSize < 0 || pageSize > MAX_SIZE) {
    violations.push({ field: 'page_size', description: `expected 0 to ${MAX_SIZE}; 0 means ${DEFAULT_SIZE}` });
  }
  if (token !== '' && after === undefined) {
    const description = 'expected the next_page_token of an answer to the same list, or nothing for the first page';
    violations.push({ field: 'page_token', description });
  }
  if (violations.length > 0) throw invalidArgument(violations);

  const size = pageSize === 0 ? DEFAULT_SIZE : pageSize;
  const found = await listPayments(prisma, { ...listedBy, after, size: size + 1 });
  const shown = found.slice(0, size);
  const last = found.length > size ? shown.at(-1) : undefined;
  return {
    payments: shown.map(paymentMessage),
    nextPageToken: last === undefined ? '' : pageToken(listedBy, last.paymentId),
  };
}
