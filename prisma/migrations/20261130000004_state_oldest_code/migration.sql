-- What runs on this schema. Every migration adds its own row from here on, so that a process that does not know one can
-- tell whether it may start.

CREATE TABLE idempotency_schema (
  migration_name text NOT NULL,
  oldest_code    text NOT NULL,
  CONSTRAINT idempotency_schema_pkey PRIMARY KEY (migration_name),
  CONSTRAINT idempotency_schema_oldest_code_is_version CHECK (oldest_code ~ '^\d+\.\d+\.\d+$')
);

COMMENT ON TABLE idempotency_schema IS 'One row per migration, written by the migration itself.';
COMMENT ON COLUMN idempotency_schema.oldest_code IS 'The oldest version of the code that can run once the migration is applied. Older ones refuse to start.';

INSERT INTO idempotency_schema (migration_name, oldest_code) VALUES
  ('20261130000001_create_idempotency_record', '0.1.0'),
  ('20261130000002_create_payments', '0.1.0'),
  ('20261130000003_one_live_payment_per_order', '0.1.0'),
  ('20261130000004_state_oldest_code', '0.1.0');
