import type {
  CreatePaymentRequest,
  RefundPaymentRequest,
  UpdatePaymentRequest,
} from '../gen/proto/payments/v1/payments';
import type { FieldViolation } from '../idempotency/index';

const MAX_TEXT_LENGTH = 128;
const MAX_METADATA_ENTRIES = 50;
const MAX_METADATA_LENGTH = 1_024;
const CURRENCIES: ReadonlySet<string> = new Set(Intl.supportedValuesOf('currency'));
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Everything that is wrong with a payment to be made; empty where nothing is. */
export function paymentViolations(request: CreatePaymentRequest): readonly FieldViolation[] {
  const violations: FieldViolation[] = [];
  const expect = (holds: boolean, field: string, description: string): void => {
    if (!holds) violations.push({ field, description });
  };
  expect(isName(request.orderId), 'order_id', NAME_EXPECTED);
  expect(request.amountMinor > 0n, 'amount_minor', AMOUNT_EXPECTED);
  expect(CURRENCIES.has(request.currency), 'currency', 'expected an ISO 4217 code in upper case, such as EUR');
  expect(isName(request.paymentMethod), 'payment_method', NAME_EXPECTED);
  expect(areNotes(request.metadata), 'metadata', NOTES_EXPECTED);
  return violations;
}

/** What is wrong with an order that payments are listed of; empty where nothing is, as without an order. */
export function listedOrderViolations(orderId: string): readonly FieldViolation[] {
  return orderId === '' || isName(orderId) ? [] : [{ field: 'order_id', description: NAME_EXPECTED }];
}

/** What is wrong with the id of a payment; empty where nothing is. */
export function paymentIdViolations(paymentId: string): readonly FieldViolation[] {
  return UUID.test(paymentId) ? [] : [{ field: 'payment_id', description: 'expected the UUID of a payment' }];
}

/** Everything that is wrong with a refund to be made; empty where nothing is. */
export function refundViolations({ paymentId, amountMinor, reason }: RefundPaymentRequest): readonly FieldViolation[] {
  return [
    ...paymentIdViolations(paymentId),
    ...(amountMinor > 0n ? [] : [{ field: 'amount_minor', description: AMOUNT_EXPECTED }]),
    ...(isStorable(reason, MAX_TEXT_LENGTH)
      ? []
      : [{ field: 'reason', description: `expected at most ${MAX_TEXT_LENGTH} characters, ${COUNTED}` }]),
  ];
}

/** Everything that is wrong with a change to be made; empty where nothing is. */
export function updateViolations({ paymentId, etag, metadata }: UpdatePaymentRequest): readonly FieldViolation[] {
  return [
    ...paymentIdViolations(paymentId),
    ...(UUID.test(etag) ? [] : [{ field: 'etag', description: 'expected the etag of the payment that was read' }]),
    ...(areNotes(metadata) ? [] : [{ field: 'metadata', description: NOTES_EXPECTED }]),
  ];
}

const AMOUNT_EXPECTED = 'expected a positive number of the smallest unit of the currency';
const COUNTED = 'counted as UTF-16, none of them NUL';
const NAME_EXPECTED = `expected 1 to ${MAX_TEXT_LENGTH} characters, ${COUNTED}`;
const NOTES_EXPECTED =
  `expected at most ${MAX_METADATA_ENTRIES} entries, names of 1 to ${MAX_TEXT_LENGTH} characters, ` +
  `values of at most ${MAX_METADATA_LENGTH}, ${COUNTED}`;

function isName(text: string): boolean {
  return text.length > 0 && isStorable(text, MAX_TEXT_LENGTH);
}

function areNotes(metadata: Readonly<Record<string, string>>): boolean {
  const entries = Object.entries(metadata);
  return (
    entries.length <= MAX_METADATA_ENTRIES &&
    entries.every(([name, value]) => isName(name) && isStorable(value, MAX_METADATA_LENGTH))
  );
}

/** Postgres keeps every character but NUL. */
function isStorable(text: string, maxLength: number): boolean {
  return text.length <= maxLength && !text.includes('\0');
}
