import { fenced } from './fence';

/**
 * Records the answer, as the fence of the business transaction.
 *
 * $5 status code, $6 status message, $7 response, $8 trailers, $9 resource, $10 whether the answer is kept
 */
export const COMPLETE_IF_HELD = fenced(`state = 'completed', completed_at = statement_timestamp(),
    status_code = $5::smallint, status_message = $6::text, response = $7::bytea, trailers = $8::bytea,
    resource = $9::text, answer_kept = $10::boolean, results = NULL, request = NULL`);

/** Fails in a transaction that Postgres has aborted, and is nothing else. */
export const ASSERT_NOT_ABORTED = `SELECT 1 AS alive`;
