import { randomUUID } from 'node:crypto';
import type { Prisma } from '../gen/prisma/client';
import type { ReceiptsServiceService, SendReceiptRequest } from '../gen/proto/receipts/v1/receipts';
import { type FieldViolation, invalidArgument, type UnaryHandlers } from '../idempotency/index';
import { timestamp } from '../timestamp';

const MAX_TEXT_LENGTH = 128;

/**
 * The handlers of receipts.v1.ReceiptsService: a simulator of a mail service, whose mails are rows of a spool table. The
 * mail and the answer commit together, so a repeated request is told of the mail that went out.
 */
export function createReceiptsHandlers(): UnaryHandlers<ReceiptsServiceService, Prisma.TransactionClient> {
  return {
    sendReceipt: async (request, attempt) => {
      const violations = receiptViolations(request);
      if (violations.length > 0) throw invalidArgument(violations);
      const { paymentId, orderId, amountMinor, currency } = request;
      attempt.publish({ payment_id: paymentId, order_id: orderId });
      const { scope, requestId = '' } = attempt;
      return attempt.complete(async (tx) => {
        const { mailId, createdAt } = await tx.receiptMail.create({
          data: { mailId: randomUUID(), scope, requestId, paymentId, orderId, amountMinor, currency },
        });
        attempt.publish({ resource: `mails/${mailId}` });
        return { mailId, sendTime: timestamp(createdAt) };
      });
    },
  };
}

/** Everything that is wrong with a request; empty where nothing is. */
function receiptViolations({ paymentId, orderId, amountMinor, currency }: SendReceiptRequest): FieldViolation[] {
  const violations: FieldViolation[] = [];
  const expect = (holds: boolean, field: string, description: string): void => {
    if (!holds) violations.push({ field, description });
  };
  expect(isName(paymentId), 'payment_id', NAME_EXPECTED);
  expect(isName(orderId), 'order_id', NAME_EXPECTED);
  expect(amountMinor > 0n, 'amount_minor', 'expected a positive number of the smallest unit of the currency');
  expect(/^[A-Z]{3}$/.test(currency), 'currency', 'expected an ISO 4217 code in upper case, such as EUR');
  return violations;
}

const NAME_EXPECTED = `expected 1 to ${MAX_TEXT_LENGTH} characters`;

function isName(text: string): boolean {
  return text.length > 0 && text.length <= MAX_TEXT_LENGTH && !text.includes('\0');
}
