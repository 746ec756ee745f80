-- An answer may be too large to be kept, or not be kept on purpose: then only its resource is. Said by a column, since
-- the presence of bytes must not decide: an empty answer is an answer, and a refusal has no bytes.

ALTER TABLE idempotency_record ADD COLUMN answer_kept boolean NOT NULL DEFAULT true;

COMMENT ON COLUMN idempotency_record.answer_kept IS 'False where the answer itself is not here, only what it is about (resource).';
COMMENT ON COLUMN idempotency_record.response IS 'The serialized answer; NULL for an error, and where answer_kept is false.';

INSERT INTO idempotency_schema (migration_name, oldest_code) VALUES
  ('20261130000005_keep_answers_within_bounds', '0.1.0');
