import { credentials, status } from '@grpc/grpc-js';
import { descriptorSet } from '../gen/descriptor-set';
import { AuthorizationState, CardNetworkServiceService } from '../gen/proto/cardnetwork/v1/cardnetwork';
import {
  type CallSettings,
  type ClientEvent,
  createPromiseClient,
  IdempotencyError,
  loadPolicies,
  readErrorDetails,
  StatusError,
} from '../idempotency/index';
import type { Authorization, Authorizer, NetworkCallContext } from './authorizer';
import { CARD_NETWORK_UNAVAILABLE, PAYMENTS_DOMAIN } from './domain';

/** Longest time for one request to the card network with all its attempts: less than our callers wait for one of ours. */
const TIMEOUT_MS = 8_000;
const ATTEMPT_TIMEOUT_MS = 3_000;
/** Shorter is no answer to be had. Where our caller is about to hang up, its retry still has something from it. */
const LEAST_TIMEOUT_MS = 1_000;

/** The card network behind a channel. */
export interface NetworkAuthorizer extends Authorizer {
  /** Ends the channel. */
  close(): void;
}

/** How the card network is reached. */
export interface NetworkAuthorizerOptions {
  /** A gRPC target, for example `127.0.0.1:50061`. */
  readonly address: string;
  /** Time for one request with all its attempts, milliseconds. Default 8,000; what our caller still waits counts before it. */
  readonly timeoutMs?: number;
  /** Told about every call and every retry. Default: nobody. */
  readonly onEvent?: (event: ClientEvent) => void;
}

/**
 * Asks the card network through the client of this package, always under the key it is given. Only an answer that is OK
 * and says what was asked for counts: that one the network has recorded, and repeats whoever asks again. An error of any
 * kind is none, since a later request under the same key may still be granted.
 */
export function createNetworkAuthorizer(options: NetworkAuthorizerOptions): NetworkAuthorizer {
  const { address, timeoutMs = TIMEOUT_MS, onEvent } = options;
  const client = createPromiseClient(CardNetworkServiceService, address, {
    ...{ policies: loadPolicies(descriptorSet), credentials: credentials.createInsecure(), timeoutMs, onEvent },
    attemptTimeoutMs: Math.min(ATTEMPT_TIMEOUT_MS, timeoutMs),
  });
  const settings = ({ requestId, deadline, signal }: NetworkCallContext): CallSettings => {
    const remainingMs = deadline === undefined ? timeoutMs : deadline.getTime() - Date.now();
    return { requestId, signal, timeoutMs: Math.min(timeoutMs, Math.max(LEAST_TIMEOUT_MS, remainingMs)) };
  };
  return {
    authorize: async ({ paymentId, ...asked }, call) => {
      const { authorization } = await clearly(() =>
        client.authorize({ ...asked, reference: paymentId }, settings(call)),
      );
      if (authorization?.reference !== paymentId) throw unclear();
      if (authorization.amountMinor !== asked.amountMinor || authorization.currency !== asked.currency) throw unclear();
      return decisionOf(authorization);
    },
    refund: async (asked, call) => {
      const { refund } = await clearly(() => client.refund({ ...asked }, settings(call)));
      if (refund?.authorizationId !== asked.authorizationId || refund.amountMinor !== asked.amountMinor)
        throw unclear();
      if (refund.refundId === '') throw unclear();
      return refund.refundId;
    },
    close: () => client.close(),
  };
}

function decisionOf(authorization: {
  readonly state: AuthorizationState;
  readonly authorizationId: string;
  readonly declineReason: string;
}): Authorization {
  const { state, authorizationId, declineReason } = authorization;
  switch (state) {
    case AuthorizationState.AUTHORIZATION_STATE_AUTHORIZED:
      if (authorizationId === '') throw unclear();
      return { kind: 'authorized', authorizationId };
    case AuthorizationState.AUTHORIZATION_STATE_DECLINED:
      return { kind: 'declined', reason: declineReason };
    case AuthorizationState.AUTHORIZATION_STATE_UNSPECIFIED:
    case AuthorizationState.UNRECOGNIZED:
  }
  // A state that a newer network knows arrives as a number that is none of these.
  throw unclear();
}

/**
 * An error that another request may change is UNAVAILABLE to our caller. Any other is a fault, for a person to look at; so is a
 * key that the network knows from another request: ours are derived, and no retry makes them agree.
 */
async function clearly<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    const isMixedUp =
      error instanceof IdempotencyError && readErrorDetails(error.metadata).reason === 'REQUEST_ID_REUSED';
    if (error instanceof IdempotencyError && !isMixedUp && (error.outcomeUnknown || error.retriable)) {
      // For the log: our caller is not told.
      throw Object.assign(unclear(), { cause: error });
    }
    throw error;
  }
}

function unclear(): StatusError {
  const text = 'the card network has not answered clearly: ask again with the same key';
  return new StatusError(status.UNAVAILABLE, text, [], { reason: CARD_NETWORK_UNAVAILABLE, domain: PAYMENTS_DOMAIN });
}
