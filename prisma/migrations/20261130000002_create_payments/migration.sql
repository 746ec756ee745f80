-- Payments, each with the request that made it: support asks long after the record of the key is gone.

CREATE TABLE payments (
  payment_id       uuid        NOT NULL,
  scope            text        NOT NULL,
  order_id         text        NOT NULL,
  amount_minor     bigint      NOT NULL,
  currency         char(3)     NOT NULL,
  payment_method   text        NOT NULL,
  state            text        NOT NULL,
  authorization_id text        NOT NULL,
  metadata         jsonb       NOT NULL DEFAULT '{}',
  etag             uuid        NOT NULL,
  request_id       text,
  created_at       timestamptz NOT NULL DEFAULT now(),
  updated_at       timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT payments_pkey PRIMARY KEY (payment_id),
  CONSTRAINT payments_scope_not_empty CHECK (scope <> ''),
  CONSTRAINT payments_order_id_not_empty CHECK (order_id <> ''),
  CONSTRAINT payments_amount_positive CHECK (amount_minor > 0),
  CONSTRAINT payments_currency_iso_4217 CHECK (currency ~ '^[A-Z]{3}$'),
  CONSTRAINT payments_state_known CHECK (state IN ('authorized', 'cancelled')),
  CONSTRAINT payments_metadata_is_object CHECK (jsonb_typeof(metadata) = 'object')
);

CREATE INDEX payments_scope_order ON payments (scope, order_id);

-- So that no process writes its own clock.
CREATE FUNCTION payments_set_updated_at() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.updated_at := now();
  RETURN NEW;
END
$$;

CREATE TRIGGER payments_updated_at BEFORE UPDATE ON payments
  FOR EACH ROW EXECUTE FUNCTION payments_set_updated_at();

COMMENT ON TABLE payments IS 'One row per payment that was made, whoever asked how often.';
COMMENT ON COLUMN payments.scope IS 'The account that made it; every read and write is limited to it.';
COMMENT ON COLUMN payments.amount_minor IS 'In the smallest unit of the currency.';
COMMENT ON COLUMN payments.payment_method IS 'A token of the card, never its number.';
COMMENT ON COLUMN payments.request_id IS 'The key of the request that made it. NULL where the method ran without one.';
COMMENT ON COLUMN payments.etag IS 'New at every write.';
COMMENT ON COLUMN payments.updated_at IS 'Set by a trigger, by the database clock.';
