import { credentials, status } from '@grpc/grpc-js';
import { descriptorSet } from '../gen/descriptor-set';
import {
  type Authorization,
  AuthorizationState,
  CardNetworkServiceService,
} from '../gen/proto/cardnetwork/v1/cardnetwork';
import { createPromiseClient, derivedRequestId, IdempotencyError, loadPolicies } from '../idempotency/index';
import type { Authorizer } from '../payments/authorizer';
import { createNetworkAuthorizer } from '../payments/network-authorizer';
import type { Charge } from './findings';
import { isUuid } from './is-uuid';

/** The largest page that the network gives. */
const PAGE_SIZE = 1_000;
/** Longest time for one question with all its attempts: a network that is away is soon told of. */
const TIMEOUT_MS = 10_000;

/** The books of the card network, as far as they are about us. */
export interface NetworkBooks {
  /** All charges made at a time or later, in pages, oldest first. */
  charges(since: Date): AsyncIterable<readonly Charge[]>;
  /** One charge; undefined where the network holds none under that id. */
  find(authorizationId: string): Promise<Charge | undefined>;
  /** All charges that name a payment. */
  inNameOf(paymentId: string): Promise<readonly Charge[]>;
  /**
   * Gives back so much of a charge, under `refundKey`.
   *
   * @returns the network's id of the refund
   * @throws StatusError and IdempotencyError while it is not known whether it was given back, or when it is refused
   */
  refund(charge: Charge, amountMinor: bigint): Promise<string>;
  /** Asks for refunds of ours, each under its own key. */
  readonly authorizer: Pick<Authorizer, 'refund'>;
  /** Ends the channels. */
  close(): void;
}

/**
 * The key of the refund that repairs a charge: always the same, so that to repair it twice is to repair it once. It is
 * dated like the charge, so the network refuses it once it would not know it any more.
 */
export function refundKey({ requestId, authorizationId }: Charge): string {
  // The id too: a network that charged twice under one key has two to be given back.
  return derivedRequestId(requestId, `reconciliation/refund/${authorizationId}`);
}

/** Reads and mends the books behind an address, for example `127.0.0.1:50061`. */
export function openNetworkBooks(address: string): NetworkBooks {
  const client = createPromiseClient(CardNetworkServiceService, address, {
    ...{ policies: loadPolicies(descriptorSet), credentials: credentials.createInsecure() },
    timeoutMs: TIMEOUT_MS,
  });
  const authorizer = createNetworkAuthorizer({ address });

  async function* pages(filter: { readonly since?: Date; readonly reference?: string }) {
    const { since, reference = '' } = filter;
    let pageToken = '';
    do {
      const page = await client.listAuthorizations({
        ...{ pageSize: PAGE_SIZE, pageToken, reference, requestId: '' },
        createdSince: since && { seconds: BigInt(Math.floor(since.getTime() / 1000)), nanos: 0 },
      });
      yield page.authorizations.flatMap(chargesOf);
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
  }

  return {
    charges: (since) => pages({ since }),
    find: async (authorizationId) => {
      // The network takes no other id, and has none.
      if (!isUuid(authorizationId)) return undefined;
      try {
        const { authorization } = await client.getAuthorization({ authorizationId });
        return authorization === undefined ? undefined : chargesOf(authorization)[0];
      } catch (error) {
        if (error instanceof IdempotencyError && error.code === status.NOT_FOUND) return undefined;
        throw error;
      }
    },
    inNameOf: async (paymentId) => {
      const found: Charge[] = [];
      for await (const page of pages({ reference: paymentId })) found.push(...page);
      return found;
    },
    refund: (charge, amountMinor) =>
      authorizer.refund(
        { authorizationId: charge.authorizationId, amountMinor },
        { requestId: refundKey(charge), deadline: undefined, signal: new AbortController().signal },
      ),
    authorizer,
    close: () => {
      client.close();
      authorizer.close();
    },
  };
}

/** None for what was declined. */
function chargesOf(authorization: Authorization): readonly Charge[] {
  const { authorizationId, reference, requestId, amountMinor, currency, refundedMinor, state, createTime } =
    authorization;
  if (state !== AuthorizationState.AUTHORIZATION_STATE_AUTHORIZED) return [];
  // Without a time it counts as made long ago: what is young is left alone, and must not be so for ever.
  const createdAtMs = createTime === undefined ? 0 : Number(createTime.seconds) * 1000 + createTime.nanos / 1e6;
  return [{ authorizationId, reference, requestId, amountMinor, currency, refundedMinor, createdAtMs }];
}
