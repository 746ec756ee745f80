import { randomUUID } from 'node:crypto';

/** What is to be authorized. */
export interface AuthorizationRequest {
  /** In the smallest unit of the currency. */
  readonly amountMinor: bigint;
  /** ISO 4217. */
  readonly currency: string;
  /** A token of the card. */
  readonly paymentMethod: string;
}

/** Whoever holds the amount for us at the card's bank. */
export interface Authorizer {
  /** @returns the id of the authorization */
  authorize(request: AuthorizationRequest): Promise<string>;
}

/**
 * A stand-in for the card network: says yes to everything, keeps nothing, and asks nobody. It does not make a payment
 * real.
 */
export function createStandInAuthorizer(): Authorizer {
  return { authorize: () => Promise.resolve(`stand-in-${randomUUID()}`) };
}
