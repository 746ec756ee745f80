import { randomUUID } from 'node:crypto';

/** What is to be authorized. */
export interface AuthorizationRequest {
  /** What it is called at the card network: the id that the payment will have. */
  readonly paymentId: string;
  /** In the smallest unit of the currency. */
  readonly amountMinor: bigint;
  /** ISO 4217. */
  readonly currency: string;
  /** A token of the card. */
  readonly paymentMethod: string;
}

/** What is to be given back. */
export interface NetworkRefundRequest {
  readonly authorizationId: string;
  /** In the smallest unit of the authorization's currency. */
  readonly amountMinor: bigint;
}

/** What a call to the card network is made with. */
export interface NetworkCallContext {
  /** The derived key of the effect: the same whoever sends it. */
  readonly requestId: string;
  /** When whoever asked us stops waiting; undefined when never. */
  readonly deadline: Date | undefined;
  /** Fires when nothing can be made of the answer any more. */
  readonly signal: AbortSignal;
}

/** What the bank of a card said. It is stored, so its fields may only grow. */
export type Authorization =
  | { readonly kind: 'authorized'; readonly authorizationId: string }
  /** Finally: the same key is told the same for ever. */
  | { readonly kind: 'declined'; readonly reason: string };

/** Whoever holds amounts for us at a card's bank, and gives them back. */
export interface Authorizer {
  /**
   * Resolves with what was recorded under the key, and rejects with anything that is not known to be that.
   *
   * @throws StatusError UNAVAILABLE while it is not known whether the amount is held
   */
  authorize(request: AuthorizationRequest, call: NetworkCallContext): Promise<Authorization>;
  /**
   * The same for giving back.
   *
   * @returns the network's id of the refund
   * @throws StatusError UNAVAILABLE while it is not known whether the amount was given back
   */
  refund(request: NetworkRefundRequest, call: NetworkCallContext): Promise<string>;
}

/**
 * A stand-in for the card network: says yes to everything, keeps nothing, and asks nobody. It does not make a payment
 * real.
 */
export function createStandInAuthorizer(): Authorizer {
  return {
    authorize: () => Promise.resolve({ kind: 'authorized', authorizationId: `stand-in-${randomUUID()}` }),
    refund: () => Promise.resolve(`stand-in-${randomUUID()}`),
  };
}
