import type { Boundary } from './boundary-proxy';

/** What became of one request whose process was killed at one of its boundaries. */
export interface CrashRow extends Boundary {
  /** Which of the boundaries, from 1. */
  readonly number: number;
  /** What was killed, at which request: `payments, CreatePayment`. */
  readonly killed: string;
  /** Who finished it. */
  readonly finishedBy: string;
  /** What the books say then. */
  readonly books: Books;
}

/** What is counted of one request, on both sides. */
export interface Books {
  readonly payments: number;
  /** At the card network. */
  readonly authorizations: number;
  /** Of the payment. */
  readonly refunds: number;
  /** At the card network. */
  readonly networkRefunds: number;
  readonly mails: number;
  /** Of the request that was killed. */
  readonly attempts: number;
}

/** The table as text, a line each. */
export function crashTable(rows: readonly CrashRow[]): string {
  const head = ['killed', 'at', '', 'finished by', 'payments', 'authorizations', 'refunds', 'mails', 'attempts'];
  const lines = rows.map(({ killed, number, name, point, finishedBy, books }) => [
    ...[killed, String(number), `${point} ${name}`, finishedBy, String(books.payments), String(books.authorizations)],
    ...[`${books.refunds}/${books.networkRefunds}`, String(books.mails), String(books.attempts)],
  ]);
  const widths = head.map((_, column) => Math.max(...[head, ...lines].map((line) => line[column]?.length ?? 0)));
  return [head, ...lines]
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
