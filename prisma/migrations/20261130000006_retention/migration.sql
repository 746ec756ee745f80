-- Retention: one process at a time forgets what is old, and nothing that is half done goes with it.

CREATE TABLE idempotency_maintenance (
  only_row    boolean     NOT NULL DEFAULT true,
  owner_token uuid,
  instance    text,
  held_until  timestamptz NOT NULL DEFAULT '-infinity',
  CONSTRAINT idempotency_maintenance_pkey PRIMARY KEY (only_row),
  CONSTRAINT idempotency_maintenance_only_row CHECK (only_row)
);

INSERT INTO idempotency_maintenance DEFAULT VALUES;

COMMENT ON TABLE idempotency_maintenance IS 'One row. Which process creates, drops and sweeps: a lease, since no lock outlives a statement behind a connection pooler. It saves work; everything it elects for is safe when two believe that they hold it.';
COMMENT ON COLUMN idempotency_maintenance.owner_token IS 'New at every round.';
COMMENT ON COLUMN idempotency_maintenance.instance IS 'The process that held it last; for people, never for a decision.';
COMMENT ON COLUMN idempotency_maintenance.held_until IS 'Until when nobody else may take it. By the database clock.';

-- kept_at stands first, so that columns which the records get later follow in the same order in both tables.
CREATE TABLE idempotency_record_kept (
  kept_at timestamptz NOT NULL,
  LIKE idempotency_record INCLUDING ALL
);

COMMENT ON TABLE idempotency_record_kept IS 'Records that were parked or half done when their day was dropped: somebody may have been charged. They are kept until a person removes them. A column that idempotency_record gets, this table gets too.';
COMMENT ON COLUMN idempotency_record_kept.kept_at IS 'When the day was dropped.';

-- On this partition alone: dated records go with their day, and their claims need not pay for it. Neither column changes
-- after the claim, so that completions stay HOT.
CREATE INDEX idempotency_record_undated_method_created ON idempotency_record_undated (method, created_at);

INSERT INTO idempotency_schema (migration_name, oldest_code) VALUES ('20261130000006_retention', '0.1.0');
