-- Methods whose policy says `resume` have their half-finished requests finished in the background. What is run again is
-- the request, so it is kept with the record for as long as that is open; other methods store none and pay nothing.

ALTER TABLE idempotency_record ADD COLUMN request bytea;
ALTER TABLE idempotency_record_kept ADD COLUMN request bytea;

COMMENT ON COLUMN idempotency_record.request IS 'The request as received, while the record is open and its method is resumed in the background; else NULL. No CHECK ties it to the state: older code completes such a record and leaves it.';
COMMENT ON COLUMN idempotency_record_kept.request IS 'As in idempotency_record.';

-- The open requests of those methods, oldest first. None of its columns changes after the claim of any other method, so that
-- their completions and renewals stay HOT. Every column that a predicate names counts as indexed: one over state,
-- recovery_point or lease_until would cost every record of every method its HOT updates.
CREATE INDEX idempotency_record_open_request ON idempotency_record (method, created_at) WHERE request IS NOT NULL;

INSERT INTO idempotency_schema (migration_name, oldest_code) VALUES ('20261130000009_resume', '0.1.0');
