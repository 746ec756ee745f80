-- The record of keys: who runs a request, and what it answered.

CREATE TABLE idempotency_method (
  id             smallint GENERATED ALWAYS AS IDENTITY,
  path           text     NOT NULL,
  retention_ms   bigint   NOT NULL,
  max_key_age_ms bigint   NOT NULL,
  CONSTRAINT idempotency_method_pkey PRIMARY KEY (id),
  CONSTRAINT idempotency_method_path_unique UNIQUE (path),
  CONSTRAINT idempotency_method_retention_positive CHECK (retention_ms > 0),
  CONSTRAINT idempotency_method_max_key_age_positive CHECK (max_key_age_ms > 0)
);

COMMENT ON TABLE idempotency_method IS 'Every method that ever took keys here. Records refer to it by its small id; its retention holds days back even where no running process knows the method.';
COMMENT ON COLUMN idempotency_method.path IS 'As on the wire: /package.Service/Method.';
COMMENT ON COLUMN idempotency_method.retention_ms IS 'How long a record is kept after its claim: the longest that any process ever promised.';
COMMENT ON COLUMN idempotency_method.max_key_age_ms IS 'How long after its date a key may be used first: the longest that any process ever allowed.';

CREATE TABLE idempotency_retention (
  only_row        boolean NOT NULL DEFAULT true,
  dropped_through date    NOT NULL DEFAULT '1970-01-01',
  CONSTRAINT idempotency_retention_pkey PRIMARY KEY (only_row),
  CONSTRAINT idempotency_retention_only_row CHECK (only_row)
);

INSERT INTO idempotency_retention DEFAULT VALUES;

COMMENT ON TABLE idempotency_retention IS 'One row. What has been forgotten on purpose.';
COMMENT ON COLUMN idempotency_retention.dropped_through IS 'Dated keys of this day and before are never claimed again. It only grows.';

-- Columns stand in the order of their alignment: a record is written once per payment, so padding is money.
CREATE TABLE idempotency_record (
  created_at     timestamptz NOT NULL,
  lease_until    timestamptz NOT NULL,
  completed_at   timestamptz,
  bucket         date        NOT NULL,
  attempt        integer     NOT NULL,
  method         smallint    NOT NULL,
  status_code    smallint,
  id             uuid        NOT NULL,
  owner_token    uuid        NOT NULL,
  state          text        NOT NULL,
  fingerprint    bytea       NOT NULL,
  scope          text        NOT NULL,
  request_id     text        NOT NULL,
  instance       text        NOT NULL,
  resource       text,
  status_message text,
  response       bytea,
  trailers       bytea,
  recovery_point text,
  results        bytea,
  CONSTRAINT idempotency_record_pkey PRIMARY KEY (bucket, id),
  CONSTRAINT idempotency_record_state_known CHECK (state IN ('claimed', 'completed', 'parked', 'expired')),
  CONSTRAINT idempotency_record_attempt_counts_from_one CHECK (attempt >= 1),
  CONSTRAINT idempotency_record_scope_not_empty CHECK (scope <> ''),
  CONSTRAINT idempotency_record_request_id_length CHECK (char_length(request_id) BETWEEN 16 AND 128),
  CONSTRAINT idempotency_record_fingerprint_versioned CHECK (octet_length(fingerprint) > 1),
  CONSTRAINT idempotency_record_status_code_known CHECK (status_code BETWEEN 0 AND 16),
  CONSTRAINT idempotency_record_answer_only_when_completed CHECK (
    state IN ('completed', 'expired')
    OR (completed_at IS NULL AND status_code IS NULL AND status_message IS NULL AND response IS NULL AND trailers IS NULL)
  ),
  CONSTRAINT idempotency_record_completed_has_status CHECK (
    state <> 'completed' OR (completed_at IS NOT NULL AND status_code IS NOT NULL)
  )
) PARTITION BY RANGE (bucket);

COMMENT ON TABLE idempotency_record IS 'One row per (scope, method, key) while it is kept. claimed -> completed; claimed -> gone (release); claimed -> claimed (takeover); claimed -> parked; completed -> expired; all -> dropped with their day. The state column decides, never the presence of bytes: an empty answer is an answer.';
COMMENT ON COLUMN idempotency_record.bucket IS 'The UTC day inside a UUIDv7 key, or 1970-01-01 for an undated key. A function of the key alone, so that the primary key is unique across all days.';
COMMENT ON COLUMN idempotency_record.id IS '48 bits of the key (its time, else its hash), then 80 bits of a hash of scope, method and key. Never decides alone: the three are compared on every read.';
COMMENT ON COLUMN idempotency_record.scope IS 'Whose key: the stable account of the caller.';
COMMENT ON COLUMN idempotency_record.method IS 'idempotency_method.id. No foreign key: it would lock a shared row at every claim.';
COMMENT ON COLUMN idempotency_record.request_id IS 'The key, case folded where it is a UUID.';
COMMENT ON COLUMN idempotency_record.fingerprint IS 'Version byte, hash of the request as received, hash of its canonical form. Either hash equal is the same request.';
COMMENT ON COLUMN idempotency_record.owner_token IS 'New at every claim and takeover. Every write of an attempt must name it.';
COMMENT ON COLUMN idempotency_record.attempt IS 'How often the key was claimed, from 1.';
COMMENT ON COLUMN idempotency_record.lease_until IS 'Until when nobody else may take the claim over.';
COMMENT ON COLUMN idempotency_record.status_code IS 'gRPC code of the recorded answer, 0 for OK.';
COMMENT ON COLUMN idempotency_record.response IS 'The serialized answer; NULL for an error, or where only the resource is recorded.';
COMMENT ON COLUMN idempotency_record.trailers IS 'Serialized trailers that belong to the recorded answer.';
COMMENT ON COLUMN idempotency_record.resource IS 'What the request is about, as the handler published it.';
COMMENT ON COLUMN idempotency_record.recovery_point IS 'The last phase whose results are stored.';
COMMENT ON COLUMN idempotency_record.results IS 'Results of the phases up to the recovery point.';
COMMENT ON COLUMN idempotency_record.instance IS 'The process that claimed last; for people, never for a decision.';

-- Fill factor 50: every completion is then a HOT update, which touches no index.
CREATE TABLE idempotency_record_undated PARTITION OF idempotency_record
  FOR VALUES FROM ('1970-01-01') TO ('1970-01-02') WITH (fillfactor = 50);

COMMENT ON TABLE idempotency_record_undated IS 'Records of keys that carry no date.';
