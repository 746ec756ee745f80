-- Payments and refunds that are under way while the card network is asked, refunds that were made, and the books of the
-- simulated card network.

CREATE TABLE payment_drafts (
  payment_id     uuid        NOT NULL,
  scope          text        NOT NULL,
  order_id       text        NOT NULL,
  amount_minor   bigint      NOT NULL,
  currency       char(3)     NOT NULL,
  payment_method text        NOT NULL,
  metadata       jsonb       NOT NULL DEFAULT '{}',
  request_id     text        NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT payment_drafts_pkey PRIMARY KEY (payment_id),
  CONSTRAINT payment_drafts_one_per_order UNIQUE (scope, order_id),
  CONSTRAINT payment_drafts_amount_positive CHECK (amount_minor > 0)
);

CREATE INDEX payment_drafts_created ON payment_drafts (created_at);

COMMENT ON TABLE payment_drafts IS 'Payments whose card network is being asked: no payments yet, and shown to nobody. A draft goes in the transaction that records its payment, or that the card was declined. One that stays belongs to a request that waits for its retry, or for a person.';
COMMENT ON CONSTRAINT payment_drafts_one_per_order ON payment_drafts IS 'Of two requests for one order, one asks the card network at a time.';
COMMENT ON COLUMN payment_drafts.payment_id IS 'The id that the payment will have; the reference of its charge at the card network.';
COMMENT ON COLUMN payment_drafts.request_id IS 'The key of the request that made it, from which that of the charge is derived.';

CREATE TABLE refunds (
  refund_id         uuid        NOT NULL,
  payment_id        uuid        NOT NULL,
  scope             text        NOT NULL,
  amount_minor      bigint      NOT NULL,
  currency          char(3)     NOT NULL,
  reason            text        NOT NULL,
  state             text        NOT NULL,
  network_refund_id text,
  request_id        text        NOT NULL,
  created_at        timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT refunds_pkey PRIMARY KEY (refund_id),
  CONSTRAINT refunds_amount_positive CHECK (amount_minor > 0),
  CONSTRAINT refunds_state_known CHECK (state IN ('reserved', 'done')),
  CONSTRAINT refunds_done_has_network_id CHECK ((state = 'done') = (network_refund_id IS NOT NULL))
);

CREATE INDEX refunds_payment ON refunds (payment_id);
CREATE INDEX refunds_reserved ON refunds (created_at) WHERE state = 'reserved';

COMMENT ON TABLE refunds IS 'Money given back. reserved -> done, or gone where the card network declined. A row is written while the row of its payment is locked, so that all rows of a payment never come to more than was paid.';
COMMENT ON COLUMN refunds.state IS 'reserved: the card network is being asked, and the amount counts as given back.';
COMMENT ON COLUMN refunds.request_id IS 'The key of the request that made it, from which that of the effect is derived.';

CREATE TABLE card_network_authorizations (
  authorization_id uuid        NOT NULL,
  scope            text        NOT NULL,
  request_id       text        NOT NULL,
  reference        text        NOT NULL,
  amount_minor     bigint      NOT NULL,
  currency         char(3)     NOT NULL,
  payment_method   text        NOT NULL,
  state            text        NOT NULL,
  decline_reason   text        NOT NULL DEFAULT '',
  created_at       timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT card_network_authorizations_pkey PRIMARY KEY (authorization_id),
  CONSTRAINT card_network_authorizations_scope_not_empty CHECK (scope <> ''),
  CONSTRAINT card_network_authorizations_state_known CHECK (state IN ('authorized', 'declined')),
  CONSTRAINT card_network_authorizations_declined_has_reason CHECK ((state = 'declined') = (decline_reason <> ''))
);

CREATE INDEX card_network_authorizations_created ON card_network_authorizations (scope, created_at, authorization_id);
CREATE INDEX card_network_authorizations_reference ON card_network_authorizations (scope, reference);
CREATE INDEX card_network_authorizations_request ON card_network_authorizations (scope, request_id);

COMMENT ON TABLE card_network_authorizations IS 'The books of the simulated card network: one row per time that a card was asked. Neither key nor reference is unique on purpose: a card that is charged twice is a second row.';

CREATE TABLE card_network_refunds (
  refund_id        uuid        NOT NULL,
  authorization_id uuid        NOT NULL,
  scope            text        NOT NULL,
  request_id       text        NOT NULL,
  amount_minor     bigint      NOT NULL,
  created_at       timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT card_network_refunds_pkey PRIMARY KEY (refund_id)
);

CREATE INDEX card_network_refunds_authorization ON card_network_refunds (authorization_id);

COMMENT ON TABLE card_network_refunds IS 'What the simulated card network gave back. It does not refuse more than was held on purpose: that is the duty of who asks, and here it shows where that failed.';

INSERT INTO idempotency_schema (migration_name, oldest_code) VALUES ('20261130000008_card_network_and_refunds', '0.1.0');
