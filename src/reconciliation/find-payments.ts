import type { PaymentRow } from '../payments/payment-repository';
import { belongsTo, type Comparison, comparePair, foundPayment, isClaimed, isYoung } from './comparison';
import type { Charge, UnderWay } from './findings';
import { livePayments, ordersPaidTwice, readRefunds } from './own-books';

/** Goes through our live payments, and asks the network for the charge of each that it has not shown yet. */
export async function findUnchargedPayments(comparison: Comparison): Promise<void> {
  for await (const page of livePayments(comparison.prisma, comparison.since)) {
    for (const payment of page) {
      if (!comparison.charged.has(payment.paymentId)) await judgePayment(comparison, payment);
    }
  }
}

/** Goes through the orders with several live payments. */
export async function findDuplicatePayments(comparison: Comparison): Promise<void> {
  const { prisma, since } = comparison;
  for (const payments of await ordersPaidTwice(prisma, since)) await judgeLivePayments(comparison, payments);
}

/**
 * Looks at the live payments of one order, the oldest first. The oldest of which something is held is kept; those without
 * a charge are found as such, however old they are.
 */
export async function judgeLivePayments(comparison: Comparison, payments: readonly PaymentRow[]): Promise<void> {
  const { findings, underWay } = comparison;
  const charged: { readonly payment: PaymentRow; readonly charge: Charge }[] = [];
  let open: PaymentRow | undefined;
  for (const payment of payments) {
    const charge = await judgePayment(comparison, payment);
    if (charge !== undefined) charged.push({ payment, charge });
    if ((await whyUnderWay(comparison, payment)) !== undefined) open ??= payment;
  }
  // One that was given back is not what the order was paid with.
  const kept = charged.find(({ charge }) => charge.refundedMinor < charge.amountMinor) ?? charged[0];
  const others = charged.filter((each) => each !== kept);
  if (kept === undefined || others.length === 0) return;
  // Which is the duplicate is only clear when all of them are settled.
  if (open !== undefined) {
    noteUnderWay(underWay, open, (await whyUnderWay(comparison, open)) ?? 'young');
    return;
  }
  const keptPaymentId = kept.payment.paymentId;
  for (const { payment, charge } of others) {
    findings.push({ kind: 'duplicate_payment', payment: foundPayment(payment), charge, keptPaymentId });
  }
}

/** Looks at one live payment. Returns its charge; without one it is found, or under way. */
async function judgePayment(comparison: Comparison, payment: PaymentRow): Promise<Charge | undefined> {
  const { findings, network, prisma, underWay } = comparison;
  const { paymentId } = payment;
  const charge = await network.find(payment.authorizationId);
  if (charge !== undefined && belongsTo(charge, payment)) {
    await comparePair(comparison, { payment, charge, refunds: (await readRefunds(prisma, [paymentId]))(paymentId) });
    return charge;
  }
  const isFound = findings.some((found) => found.kind === 'uncharged_payment' && found.payment.paymentId === paymentId);
  if (isFound) return undefined;
  const why = await whyUnderWay(comparison, payment);
  if (why === undefined) findings.push({ kind: 'uncharged_payment', payment: foundPayment(payment) });
  else noteUnderWay(underWay, payment, why);
  return undefined;
}

async function whyUnderWay(comparison: Comparison, payment: PaymentRow): Promise<UnderWay['why'] | undefined> {
  if (isYoung(comparison, payment.createdAt.getTime())) return 'young';
  return (await isClaimed(comparison, payment)) ? 'claimed' : undefined;
}

function noteUnderWay(underWay: UnderWay[], { paymentId: id }: PaymentRow, why: UnderWay['why']): void {
  if (!underWay.some((noted) => noted.subject === 'payment' && noted.id === id)) {
    underWay.push({ subject: 'payment', id, why });
  }
}
