import type { Boundary } from './boundary-proxy';
import type { TestDatabase } from './postgres';

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

/** Counts what there is of an order, and the attempts of a request where one is named. */
export async function readBooks(
  database: Pick<TestDatabase, 'rows'>,
  order: string,
  requestId: string | undefined,
): Promise<Books> {
  const [found] = await database.rows<Books>(
    `WITH payment AS (SELECT payment_id FROM payments WHERE order_id = $1),
     charge AS (
       SELECT authorization_id FROM card_network_authorizations
       WHERE reference IN (SELECT payment_id::text FROM payment
                           UNION SELECT payment_id::text FROM payment_drafts WHERE order_id = $1)
     )
     SELECT (SELECT count(*) FROM payment)::int AS payments,
       (SELECT count(*) FROM charge)::int AS authorizations,
       (SELECT count(*) FROM refunds WHERE state = 'done' AND payment_id IN (SELECT payment_id FROM payment))::int
         AS refunds,
       (SELECT count(*) FROM card_network_refunds WHERE authorization_id IN (SELECT authorization_id FROM charge))::int
         AS "networkRefunds",
       (SELECT count(*) FROM receipt_mails WHERE order_id = $1)::int AS mails,
       coalesce((SELECT attempt FROM idempotency_record WHERE request_id = $2), 0)::int AS attempts`,
    [order, requestId],
  );
  if (found === undefined) throw new Error('no books');
  return found;
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
