-- An order is paid once, whatever keys its payments carry, and for as long as the payment lives: behind the key, whose
-- record is gone one day, stands a rule that has no retention.

CREATE UNIQUE INDEX payments_one_live_per_order ON payments (scope, order_id) WHERE state = 'authorized';

COMMENT ON INDEX payments_one_live_per_order IS 'A second payment of an order is refused until the first is cancelled.';

-- Pages of an account, newest first.
CREATE INDEX payments_scope_created ON payments (scope, created_at DESC, payment_id DESC);
