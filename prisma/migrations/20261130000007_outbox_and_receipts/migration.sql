-- What a transaction wants told to others commits with it (outbox), what it was told is taken once (inbox), and receipts,
-- the consumer that must not send two mails.

CREATE SEQUENCE outbox_position AS bigint;

COMMENT ON SEQUENCE outbox_position IS 'Drawn while the row of the aggregate is locked: within an aggregate, positions are in the order of the commits.';

CREATE TABLE outbox_aggregates (
  aggregate_type text        NOT NULL,
  aggregate_id   text        NOT NULL,
  last_position  bigint      NOT NULL,
  due_at         timestamptz NOT NULL DEFAULT now(),
  claim_token    uuid,
  state          text        NOT NULL,
  CONSTRAINT outbox_aggregates_pkey PRIMARY KEY (aggregate_type, aggregate_id),
  CONSTRAINT outbox_aggregates_state_known CHECK (state IN ('waiting', 'parked', 'empty'))
);

CREATE INDEX outbox_aggregates_due ON outbox_aggregates (due_at) WHERE state = 'waiting';
CREATE INDEX outbox_aggregates_empty ON outbox_aggregates (aggregate_type, aggregate_id) WHERE state = 'empty';

COMMENT ON TABLE outbox_aggregates IS 'The queue: one row per aggregate that has undelivered events. Adding an event locks it until the commit; a relay takes it to deliver the oldest event. waiting -> empty or waiting (delivered); waiting -> parked; parked -> waiting (requeued); empty -> waiting (added) or gone (swept).';
COMMENT ON COLUMN outbox_aggregates.last_position IS 'Position of the newest event. Who delivers an older one leaves the row waiting.';
COMMENT ON COLUMN outbox_aggregates.due_at IS 'From when on a relay may take it: when it was added, the end of the lease of who has it, or the end of a backoff.';
COMMENT ON COLUMN outbox_aggregates.claim_token IS 'New whenever a relay takes it. What a relay writes of an event must name it.';
COMMENT ON COLUMN outbox_aggregates.state IS 'parked: its oldest undelivered event waits for a person, and holds back those behind it.';

CREATE TABLE outbox_events (
  position       bigint      NOT NULL,
  event_id       uuid        NOT NULL,
  previous_id    uuid,
  aggregate_type text        NOT NULL,
  aggregate_id   text        NOT NULL,
  type           text        NOT NULL,
  payload        bytea       NOT NULL,
  headers        jsonb       NOT NULL,
  state          text        NOT NULL DEFAULT 'pending',
  attempts       integer     NOT NULL DEFAULT 0,
  last_error     text,
  created_at     timestamptz NOT NULL DEFAULT now(),
  delivered_at   timestamptz,
  CONSTRAINT outbox_events_pkey PRIMARY KEY (event_id),
  CONSTRAINT outbox_events_state_known CHECK (state IN ('pending', 'parked', 'delivered')),
  CONSTRAINT outbox_events_delivered_has_time CHECK ((state = 'delivered') = (delivered_at IS NOT NULL)),
  CONSTRAINT outbox_events_attempts_not_negative CHECK (attempts >= 0),
  CONSTRAINT outbox_events_headers_is_object CHECK (jsonb_typeof(headers) = 'object')
);

CREATE UNIQUE INDEX outbox_events_undelivered
  ON outbox_events (aggregate_type, aggregate_id, position) WHERE state <> 'delivered';
CREATE INDEX outbox_events_parked ON outbox_events (position) WHERE state = 'parked';
CREATE INDEX outbox_events_delivered ON outbox_events (delivered_at) WHERE state = 'delivered';

COMMENT ON TABLE outbox_events IS 'What is to be told, at least once and in order within an aggregate. pending -> delivered; pending -> parked -> pending (requeued); delivered -> gone after its retention.';
COMMENT ON COLUMN outbox_events.event_id IS 'A UUIDv7: the key that every delivery carries, so that the consumer can tell a repetition.';
COMMENT ON COLUMN outbox_events.previous_id IS 'The key that it had before somebody requeued it under a new one, because the consumer would have refused the old one as expired.';
COMMENT ON COLUMN outbox_events.attempts IS 'Deliveries that failed since it was added or requeued.';
COMMENT ON COLUMN outbox_events.last_error IS 'For people: how the last failed delivery ended.';

CREATE TABLE inbox_messages (
  received_at timestamptz NOT NULL DEFAULT now(),
  consumer    text        NOT NULL,
  message_id  text        NOT NULL,
  CONSTRAINT inbox_messages_pkey PRIMARY KEY (consumer, message_id)
);

CREATE INDEX inbox_messages_received ON inbox_messages (received_at);

COMMENT ON TABLE inbox_messages IS 'Messages that a consumer has taken, written in the transaction of what they did.';

CREATE TABLE receipt_mails (
  mail_id      uuid        NOT NULL,
  scope        text        NOT NULL,
  request_id   text        NOT NULL,
  payment_id   text        NOT NULL,
  order_id     text        NOT NULL,
  amount_minor bigint      NOT NULL,
  currency     char(3)     NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT receipt_mails_pkey PRIMARY KEY (mail_id),
  CONSTRAINT receipt_mails_scope_not_empty CHECK (scope <> '')
);

CREATE INDEX receipt_mails_scope_payment ON receipt_mails (scope, payment_id);

COMMENT ON TABLE receipt_mails IS 'The spool of the simulated mail service: one row per mail that went out. Nothing here is unique on purpose: a mail that is sent twice is a second row.';
COMMENT ON COLUMN receipt_mails.request_id IS 'The key of the request that sent it.';

INSERT INTO idempotency_schema (migration_name, oldest_code) VALUES ('20261130000007_outbox_and_receipts', '0.1.0');
