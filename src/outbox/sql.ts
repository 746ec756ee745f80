/**
 * The statements of outbox and inbox. Rules they share: time is the database's; a relay owns an aggregate by the token of
 * its row, which stands in every WHERE; nobody holds a lock while something is delivered.
 *
 * What a relay writes need not reach the disk before it goes on: an event whose mark a crash of the database loses is
 * delivered once more, under the same id.
 */

const QUICKLY = `setting AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))`;
/** The same, without waiting long for a transaction that adds to the aggregate: the end of the lease repairs it. */
const QUICKLY_OR_NOT = `setting AS MATERIALIZED (
  SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '2s', true)
)`;

/**
 * Adds an event. The row of its aggregate stays locked until the transaction ends, and the position is drawn behind that
 * lock: so who sees an event sees all earlier ones of its aggregate, whoever commits when.
 *
 * $1 aggregate type, $2 aggregate id, $3 event id, $4 type, $5 payload, $6 headers
 */
export const ADD_EVENT = `
WITH aggregate AS (
  INSERT INTO outbox_aggregates AS aggregate (aggregate_type, aggregate_id, last_position, state)
  VALUES ($1::text, $2::text, nextval('outbox_position'), 'waiting')
  ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE
  SET last_position = nextval('outbox_position'),
    state = CASE aggregate.state WHEN 'empty' THEN 'waiting' ELSE aggregate.state END
  RETURNING last_position
)
INSERT INTO outbox_events (position, event_id, aggregate_type, aggregate_id, type, payload, headers)
SELECT last_position, $3::uuid, $1::text, $2::text, $4::text, $5::bytea, $6::jsonb FROM aggregate
RETURNING event_id`;

/**
 * Takes aggregates that are due, the longest waiting first: new ones, those whose backoff is over, and those of relays
 * that died with them. One that somebody adds to or takes at this moment is left for the next round.
 *
 * $1 token, $2 how many, $3 lease ms
 */
export const TAKE_DUE_AGGREGATES = `
WITH ${QUICKLY},
due AS MATERIALIZED (
  SELECT aggregate_type, aggregate_id
  FROM outbox_aggregates
  WHERE state = 'waiting' AND due_at <= now()
  ORDER BY due_at
  LIMIT $2::int
  FOR UPDATE SKIP LOCKED
)
UPDATE outbox_aggregates AS aggregate
SET claim_token = $1::uuid, due_at = now() + $3::float8 * interval '1 millisecond'
FROM setting, due
WHERE aggregate.aggregate_type = due.aggregate_type AND aggregate.aggregate_id = due.aggregate_id
RETURNING aggregate.aggregate_type AS "aggregateType", aggregate.aggregate_id AS "aggregateId"`;

/**
 * The oldest undelivered event of each aggregate. A statement of its own, after they were taken: the one that takes may
 * see events as they were before another relay marked them.
 *
 * $1 aggregate types, $2 aggregate ids
 */
export const SELECT_HEADS = `
SELECT event.*, (extract(epoch FROM now()) * 1000)::float8 AS "nowMs"
FROM unnest($1::text[], $2::text[]) AS aggregate (type, id)
CROSS JOIN LATERAL (
  SELECT position::text AS position, event_id::text AS id, aggregate_type AS "aggregateType",
    aggregate_id AS "aggregateId", type, payload, headers::text AS headers, attempts
  FROM outbox_events
  WHERE aggregate_type = aggregate.type AND aggregate_id = aggregate.id AND state <> 'delivered'
  ORDER BY outbox_events.position
  LIMIT 1
) AS event`;

/** The aggregate of an event goes back into the queue, or out of it, if it is still ours. $1 type, $2 id, $3 token */
const IS_HELD = `aggregate_type = $1::text AND aggregate_id = $2::text AND claim_token = $3::uuid`;

/**
 * Notes a delivery, if the aggregate is still ours. Whether there is more to deliver is decided by the row itself, which
 * whoever adds has locked. $4 position, $5 event id
 */
export const MARK_DELIVERED_IF_HELD = `
WITH ${QUICKLY_OR_NOT},
held AS (
  UPDATE outbox_aggregates
  SET claim_token = NULL,
    due_at = now(),
    state = CASE WHEN last_position > $4::bigint THEN 'waiting' ELSE 'empty' END
  FROM setting
  WHERE ${IS_HELD}
  RETURNING true
)
UPDATE outbox_events SET state = 'delivered', delivered_at = now()
FROM held
WHERE event_id = $5::uuid
RETURNING true AS marked`;

/** Notes a failed delivery, if the aggregate is still ours, and when to come again. $4 in ms, $5 event id, $6 error */
export const POSTPONE_IF_HELD = `
WITH ${QUICKLY_OR_NOT},
held AS (
  UPDATE outbox_aggregates
  SET claim_token = NULL, due_at = now() + $4::float8 * interval '1 millisecond'
  FROM setting
  WHERE ${IS_HELD}
  RETURNING true
)
UPDATE outbox_events SET attempts = attempts + 1, last_error = $6::text
FROM held
WHERE event_id = $5::uuid
RETURNING true AS marked`;

/** Puts an event aside for a person, if the aggregate is still ours. $4 attempts to add, $5 event id, $6 error */
export const PARK_IF_HELD = `
WITH ${QUICKLY_OR_NOT},
held AS (
  UPDATE outbox_aggregates SET claim_token = NULL, state = 'parked'
  FROM setting
  WHERE ${IS_HELD}
  RETURNING true
)
UPDATE outbox_events SET state = 'parked', attempts = attempts + $4::int, last_error = $6::text
FROM held
WHERE event_id = $5::uuid
RETURNING true AS marked`;

/**
 * Gives aggregates back untried. One that somebody adds to is not waited for: its lease ends.
 *
 * $1 token, $2 aggregate types, $3 aggregate ids
 */
export const RELEASE_IF_HELD = `
WITH free AS MATERIALIZED (
  SELECT aggregate_type, aggregate_id
  FROM outbox_aggregates
  JOIN unnest($2::text[], $3::text[]) AS given (type, id) ON aggregate_type = given.type AND aggregate_id = given.id
  WHERE claim_token = $1::uuid
  FOR UPDATE OF outbox_aggregates SKIP LOCKED
)
UPDATE outbox_aggregates AS aggregate SET claim_token = NULL, due_at = now()
FROM free
WHERE aggregate.aggregate_type = free.aggregate_type AND aggregate.aggregate_id = free.aggregate_id
RETURNING true AS released`;

/** Removes rows of aggregates that have nothing to deliver. Who adds at the same time makes the row anew. $1 how many */
export const SWEEP_EMPTY = `
WITH ${QUICKLY},
empty AS MATERIALIZED (
  SELECT aggregate_type, aggregate_id
  FROM outbox_aggregates
  WHERE state = 'empty'
  LIMIT $1::int
  FOR UPDATE SKIP LOCKED
),
gone AS (
  DELETE FROM outbox_aggregates AS aggregate
  USING setting, empty
  WHERE aggregate.aggregate_type = empty.aggregate_type AND aggregate.aggregate_id = empty.aggregate_id
  RETURNING true
)
SELECT count(*)::int AS "count" FROM gone`;

/**
 * Deletes delivered events after their retention, oldest first. It goes on where the last batch ended, since reading past
 * what was just deleted would get slower with every batch.
 *
 * $1 retention ms, $2 how many, $3 delivered at or after
 */
export const PURGE_DELIVERED = `
WITH ${QUICKLY},
due AS MATERIALIZED (
  SELECT event_id, delivered_at
  FROM outbox_events
  WHERE state = 'delivered' AND delivered_at >= $3::timestamptz
    AND delivered_at <= now() - $1::float8 * interval '1 millisecond'
  ORDER BY delivered_at
  LIMIT $2::int
  FOR UPDATE SKIP LOCKED
),
gone AS (DELETE FROM outbox_events WHERE event_id = ANY (ARRAY(SELECT event_id FROM due)))
SELECT count(event_id)::int AS "count", max(delivered_at)::text AS "through" FROM setting LEFT JOIN due ON true`;

/** How many events wait, how many for a person, and how long the oldest has waited. */
export const OBSERVE = `
SELECT count(*) FILTER (WHERE state = 'pending')::float8 AS "pending",
  count(*) FILTER (WHERE state = 'parked')::float8 AS "parked",
  coalesce(greatest(0, extract(epoch FROM now() - min(created_at) FILTER (WHERE state = 'pending')) * 1000), 0)::float8
    AS "oldestAgeMs"
FROM outbox_events
WHERE state <> 'delivered'`;

/** Undelivered events for a person: parked ones first. $1 how many */
export const SELECT_UNDELIVERED = `
SELECT event_id::text AS id, aggregate_type AS "aggregateType", aggregate_id AS "aggregateId", type, state, attempts,
  last_error AS "lastError", (extract(epoch FROM now() - created_at) * 1000)::float8 AS "ageMs"
FROM outbox_events
WHERE state <> 'delivered'
ORDER BY state, position
LIMIT $1::int`;

/** Parked events, oldest first. $1 behind this position, $2 how many */
export const SELECT_PARKED = `
SELECT event_id::text AS id, position::text AS position
FROM outbox_events
WHERE state = 'parked' AND position > $1::bigint
ORDER BY position
LIMIT $2::int`;

/** The state of an event and the time by the database clock. $1 event id */
export const SELECT_EVENT = `
SELECT state, type, (extract(epoch FROM now()) * 1000)::float8 AS "nowMs" FROM outbox_events WHERE event_id = $1::uuid`;

/**
 * Puts a parked event back into the queue, and with it its aggregate. The row of the event makes one of two that do so at
 * once wait, and then find nothing parked. $1 event id, $2 event id from now on
 */
export const REQUEUE_IF_PARKED = `
WITH event AS (
  UPDATE outbox_events
  SET state = 'pending', attempts = 0, event_id = $2::uuid,
    previous_id = CASE WHEN $2::uuid = $1::uuid THEN previous_id ELSE $1::uuid END
  WHERE event_id = $1::uuid AND state = 'parked'
  RETURNING aggregate_type, aggregate_id
)
UPDATE outbox_aggregates AS aggregate SET state = 'waiting', due_at = now()
FROM event
WHERE aggregate.aggregate_type = event.aggregate_type AND aggregate.aggregate_id = event.aggregate_id
RETURNING true AS requeued`;

/** Takes a message, once per consumer; of two at once the second waits for the commit of the first. $1 consumer, $2 id */
export const RECEIVE_ONCE = `
INSERT INTO inbox_messages (consumer, message_id) VALUES ($1::text, $2::text)
ON CONFLICT (consumer, message_id) DO NOTHING
RETURNING true AS received`;

/** Forgets messages that a consumer took long ago. $1 consumer, $2 after ms, $3 how many */
export const PURGE_RECEIVED = `
WITH due AS MATERIALIZED (
  SELECT message_id
  FROM inbox_messages
  WHERE consumer = $1::text AND received_at <= now() - $2::float8 * interval '1 millisecond'
  ORDER BY received_at
  LIMIT $3::int
  FOR UPDATE SKIP LOCKED
),
gone AS (
  DELETE FROM inbox_messages WHERE consumer = $1::text AND message_id = ANY (ARRAY(SELECT message_id FROM due))
)
SELECT count(*)::int AS "count" FROM due`;
