import {
  type Finding,
  FINDING_KINDS,
  type LeftRequest,
  type Outcome,
  type Report,
  type ReportedFinding,
  type UnderWay,
} from './findings';

/** The report as lines for a person: a table of findings, then one line of counts. */
export function reportLines(report: Report): readonly string[] {
  const { since, agreed, underWay, findings } = report;
  const counts = FINDING_KINDS.map((kind) => [kind, findings.filter(({ finding }) => finding.kind === kind).length])
    .filter(([, count]) => count !== 0)
    .map(([kind, count]) => `${count} ${kind}`);
  const found = counts.length === 0 ? 'nothing found' : counts.join(', ');
  const summary = `since ${since.toISOString()}: ${found}; ${agreed} payments agree, ${underWay.length} under way`;
  return [...findingLines(findings), ...waitingLines(underWay), summary].map(oneLine);
}

/** Findings as a table; nothing where there are none. */
export function findingLines(findings: readonly ReportedFinding[]): readonly string[] {
  return findings.length === 0 ? [] : alignedColumns([HEAD, ...findings.map(rowOf)]);
}

/** What was left alone, a line each. */
export function waitingLines(underWay: readonly UnderWay[]): readonly string[] {
  return underWay.map(({ subject, id, why }) => `under way: ${subject} ${id} (${why})`);
}

/** The report as one line of JSON, for programs. Amounts are texts, which no reader of numbers rounds. */
export function reportJson({ since, repair, agreed, underWay, findings }: Report): string {
  return jsonLine({
    ...{ since, repair, agreed, underWay },
    findings: findings.map(({ finding, outcome }) => ({ ...finding, outcome })),
  });
}

/** Anything as one line of JSON, with whole numbers of any size as texts. */
export function jsonLine(report: object): string {
  return JSON.stringify(report, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
}

const HEAD = ['finding', 'payment', 'order', 'authorization', 'amount', 'outcome'];

function rowOf({ finding, outcome }: ReportedFinding): readonly string[] {
  return [finding.kind, ...subjectOf(finding), outcomeText(outcome)];
}

function subjectOf(finding: Finding): readonly string[] {
  switch (finding.kind) {
    case 'orphaned_charge': {
      const { reference, authorizationId, amountMinor, refundedMinor, currency } = finding.charge;
      return [reference, '-', authorizationId, `${amountMinor - refundedMinor} ${currency}`];
    }
    case 'abandoned_draft': {
      const { paymentId, scope, orderId, amountMinor, currency } = finding.draft;
      return [paymentId, `${scope}/${orderId}`, '-', `${amountMinor} ${currency}, ${requestText(finding.request)}`];
    }
    case 'refund_unfinished': {
      const { paymentId, scope, orderId = '-', authorizationId = '-', amountMinor, currency } = finding.refund;
      const amount = `${amountMinor} ${currency}, ${requestText(finding.request)}`;
      return [paymentId, `${scope}/${orderId}`, authorizationId, amount];
    }
    case 'uncharged_payment':
    case 'duplicate_payment':
    case 'amount_mismatch':
    case 'cancelled_charge':
    case 'refund_mismatch': {
      const { paymentId, scope, orderId, authorizationId, amountMinor, currency } = finding.payment;
      return [paymentId, `${scope}/${orderId}`, authorizationId, `${amountMinor} ${currency}${differenceOf(finding)}`];
    }
  }
}

function requestText(request: LeftRequest): string {
  return `its request is ${request === 'none' ? 'forgotten' : request}`;
}

function differenceOf(finding: Exclude<Finding, { kind: 'abandoned_draft' | 'refund_unfinished' }>): string {
  switch (finding.kind) {
    case 'amount_mismatch':
      return `, at the network ${finding.charge.amountMinor} ${finding.charge.currency}`;
    case 'refund_mismatch': {
      const { doneMinor, askedMinor, charge } = finding;
      return `, refunded ${doneMinor} of ${askedMinor} asked for, at the network ${charge.refundedMinor}`;
    }
    case 'cancelled_charge':
      return `, of which the network holds ${finding.charge.amountMinor - finding.charge.refundedMinor}`;
    case 'orphaned_charge':
    case 'uncharged_payment':
    case 'duplicate_payment':
      return '';
  }
}

function outcomeText(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'found':
      return 'found; --repair goes about it';
    case 'repaired':
      return `repaired: ${outcome.how}`;
    case 'gone':
      return 'ended by somebody else meanwhile';
    case 'left':
      return `left: ${outcome.why}`;
  }
}

function alignedColumns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** One line each, whatever an order is called; and nothing that a terminal would obey. */
export function oneLine(line: string): string {
  return line.replace(/\p{Cc}+/gu, ' ');
}
