import type { Intent } from './demo-payment';

/** What one line of the table tells. */
export interface TableRow {
  readonly intent: Intent;
  /** Which attempt of its key it was, in the order in which they were sent, from 1 on. */
  readonly number: number;
  /** Name and process id of the service that was asked. */
  readonly process: string;
  readonly outcome: string;
  /** How many payments the intent had when the attempt had ended, counted in the table. */
  readonly payments: number;
}

/** The names of the columns. */
export function tableHeader(): string {
  return line(['time', 'key', 'attempt', 'amount', 'process', 'outcome', 'payments of this intent']);
}

/** One attempt that has just ended. */
export function tableRow({ intent, number, process, outcome, payments }: TableRow): string {
  const time = new Date().toISOString().slice(11, 23);
  const key = `…${intent.requestId.slice(-7)}`;
  const amount = `${(Number(intent.amountMinor) / 100).toFixed(2)} EUR`;
  return line([time, key, `${number}`, amount, process, outcome, `${payments}`]);
}

function line([
  time = '',
  key = '',
  attempt = '',
  amount = '',
  process = '',
  outcome = '',
  payments = '',
]: readonly string[]): string {
  const columns = [time.padEnd(12), key.padEnd(8), attempt.padEnd(7), amount.padStart(9), process.padEnd(10)];
  return [...columns, outcome.padEnd(19), payments].join('  ');
}
