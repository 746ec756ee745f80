import type { OrderEntry, OrderReport } from './compare-order';
import { findingLines, jsonLine, oneLine, waitingLines } from './report';

/** What there is of an order, as lines for a person: each payment with its charges and refunds, what was found, a verdict. */
export function orderLines(report: OrderReport): readonly string[] {
  const { entries, findings, underWay } = report;
  const reported = findings.map((finding) => ({ finding, outcome: { kind: 'found' } as const }));
  const lines = [...entries.flatMap(entryLines), ...findingLines(reported), ...waitingLines(underWay), verdict(report)];
  return lines.map(oneLine);
}

/** The same as one line of JSON, for programs. Amounts are texts, which no reader of numbers rounds. */
export function orderJson(report: OrderReport): string {
  return jsonLine(report);
}

function entryLines(entry: OrderEntry): readonly string[] {
  const { paymentId, state, amountMinor, currency, createdAt, requestId, charges, refunds } = entry;
  const what = state === 'draft' ? `draft ${paymentId} not paid yet` : `payment ${paymentId} ${state}`;
  const by = requestId === null ? 'without a key' : `by request ${requestId}`;
  return [
    `${what}, ${amountMinor} ${currency}, made ${createdAt.toISOString()} ${by}`,
    ...(charges.length === 0 ? ['  no charge at the card network'] : []),
    ...charges.map((charge) => {
      const made = `made ${new Date(charge.createdAtMs).toISOString()} under the key ${charge.requestId}`;
      const { authorizationId: id, refundedMinor } = charge;
      return `  charge ${id} ${charge.amountMinor} ${charge.currency}, given back ${refundedMinor}, ${made}`;
    }),
    ...refunds.map((refund) => {
      const made = `made ${refund.createdAt.toISOString()} by request ${refund.requestId}`;
      return `  refund ${refund.refundId} ${refund.state}, ${refund.amountMinor} ${refund.currency}, ${made}`;
    }),
  ];
}

function verdict({ scope, orderId, entries, findings, heldCharges }: OrderReport): string {
  const name = `${orderId} of ${scope}`;
  if (entries.length === 0) {
    return `${name}: no payment and no draft of it is known; a charge that none of ours names is found by reconcile --since`;
  }
  const drafts = entries.filter(({ state }) => state === 'draft').length;
  const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;
  const counts = [
    count(entries.length - drafts, 'payment'),
    ...(drafts === 0 ? [] : [count(drafts, 'draft')]),
    `${count(entries.flatMap(({ charges }) => charges).length, 'charge')} at the card network`,
    count(entries.flatMap(({ refunds }) => refunds).length, 'refund'),
  ];
  const double = heldCharges > 1 ? `money is held ${heldCharges} times` : 'nothing is double';
  const besides = heldCharges <= 1 && findings.length > 0 ? ', but see above' : '';
  return `${name}: ${counts.join(', ')}; ${double}${besides}`;
}
