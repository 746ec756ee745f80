/**
 * The table of a caller's own database in which `createIntents` keeps its keys: one row per business object and intent.
 * Put it into a migration of the caller; it runs once, on Postgres 13 or later.
 */
export const INTENT_TABLE_SQL = `\
-- The keys of intents: made once per business object, before the first attempt, and found again after a crash.

-- COLLATE "C": the primary key is what keeps an intent from getting a second key, so no new version of a locale may
-- change its order.
CREATE TABLE idempotency_intent (
  created_at  timestamptz      NOT NULL,
  expires_at  timestamptz      NOT NULL,
  finished_at timestamptz,
  request_id  uuid             NOT NULL,
  producer    text COLLATE "C" NOT NULL,
  intent      text COLLATE "C" NOT NULL,
  draft_id    text COLLATE "C" NOT NULL,
  CONSTRAINT idempotency_intent_pkey PRIMARY KEY (producer, intent, draft_id),
  CONSTRAINT idempotency_intent_producer_named CHECK (producer ~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$'),
  CONSTRAINT idempotency_intent_intent_named CHECK (intent ~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$'),
  CONSTRAINT idempotency_intent_draft_id_length CHECK (char_length(draft_id) BETWEEN 1 AND 255),
  CONSTRAINT idempotency_intent_request_id_dated CHECK (request_id::text ~ '^.{14}7.{4}[89ab]'),
  CONSTRAINT idempotency_intent_expires_later CHECK (expires_at > created_at)
);

CREATE INDEX idempotency_intent_open_or_old ON idempotency_intent (producer, finished_at, expires_at);

COMMENT ON TABLE idempotency_intent IS 'One row per (producer, intent, draft_id): the key that every attempt of this intent is sent with. An unfinished row is never removed by itself: what became of its request is not known here.';
COMMENT ON COLUMN idempotency_intent.created_at IS 'When the key was made, by this database; the date inside the key.';
COMMENT ON COLUMN idempotency_intent.expires_at IS 'From when on the key is not sent any more, while the server still knows whether it was used.';
COMMENT ON COLUMN idempotency_intent.finished_at IS 'When the final answer was known; NULL until then.';
COMMENT ON COLUMN idempotency_intent.request_id IS 'The key, a UUIDv7.';
COMMENT ON COLUMN idempotency_intent.producer IS 'The application that makes the intents: stable, never the name of a process.';
COMMENT ON COLUMN idempotency_intent.intent IS 'What is to be done with the draft, for example pay.';
COMMENT ON COLUMN idempotency_intent.draft_id IS 'The id of the business object.';
`;
