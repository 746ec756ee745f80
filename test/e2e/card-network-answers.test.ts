import { randomUUID } from 'node:crypto';
import { type sendUnaryData, Server, type ServerUnaryCall, status } from '@grpc/grpc-js';
import {
  type Authorization,
  AuthorizationState,
  type AuthorizeRequest,
  type AuthorizeResponse,
  CardNetworkServiceService,
  type Refund,
  type RefundRequest,
  type RefundResponse,
} from '../../src/gen/proto/cardnetwork/v1/cardnetwork';
import { listen } from '../../src/grpc-server';
import { newRequestId, StatusError } from '../../src/idempotency/index';
import { createNetworkAuthorizer, type NetworkAuthorizer } from '../../src/payments/network-authorizer';

type Answer<Response> = (response: Response) => Response | 'nothing';

/** What a card network may answer, and what the payments service makes of it. */
describe('the answers of a card network', () => {
  let authorize: Answer<Authorization>;
  let refund: Answer<Refund>;
  let server: Server;
  let authorizer: NetworkAuthorizer;

  beforeAll(async () => {
    server = new Server();
    server.addService(CardNetworkServiceService, {
      authorize: (
        { request }: ServerUnaryCall<AuthorizeRequest, AuthorizeResponse>,
        callback: sendUnaryData<AuthorizeResponse>,
      ) => {
        const { reference, amountMinor, currency } = request;
        const authorization = authorize({
          ...{ reference, amountMinor, currency, authorizationId: 'authorization-1', requestId: 'a key' },
          ...{ state: AuthorizationState.AUTHORIZATION_STATE_AUTHORIZED, declineReason: '', refundedMinor: 0n },
          createTime: undefined,
        });
        if (authorization !== 'nothing') callback(null, { authorization });
      },
      refund: (
        { request }: ServerUnaryCall<RefundRequest, RefundResponse>,
        callback: sendUnaryData<RefundResponse>,
      ) => {
        const { authorizationId, amountMinor } = request;
        const made = { authorizationId, amountMinor, refundId: 'refund-1', requestId: 'a key', createTime: undefined };
        const answer = refund(made);
        if (answer !== 'nothing') callback(null, { refund: answer });
      },
    });
    const port = await listen(server, '127.0.0.1', 0);
    authorizer = createNetworkAuthorizer({ address: `127.0.0.1:${port}`, timeoutMs: 20_000 });
  });
  beforeEach(() => {
    authorize = (authorization) => authorization;
    refund = (made) => made;
  });
  afterAll(() => {
    authorizer.close();
    server.forceShutdown();
  });

  const call = (deadline?: Date) => ({ requestId: newRequestId(), deadline, signal: new AbortController().signal });
  const asked = { paymentId: randomUUID(), amountMinor: 1_250n, currency: 'EUR', paymentMethod: 'tok_visa' };
  const toRefund = { authorizationId: 'authorization-1', amountMinor: 250n };
  const outcome = (work: Promise<unknown>) => work.catch((error: unknown) => error);
  const expectUnclear = (error: unknown): void => {
    expect(error).toBeInstanceOf(StatusError);
    expect(error).toMatchObject({ code: status.UNAVAILABLE, info: { reason: 'CARD_NETWORK_UNAVAILABLE' } });
  };

  it('count where they say what was asked for', async () => {
    expect(await authorizer.authorize(asked, call())).toEqual({
      kind: 'authorized',
      authorizationId: 'authorization-1',
    });
    expect(await authorizer.refund(toRefund, call())).toBe('refund-1');
    authorize = (authorization) => ({
      ...authorization,
      ...{ state: AuthorizationState.AUTHORIZATION_STATE_DECLINED, declineReason: 'stolen_card' },
    });
    expect(await authorizer.authorize(asked, call())).toEqual({ kind: 'declined', reason: 'stolen_card' });
  });

  it.each<readonly [string, Partial<Authorization>]>([
    ['another payment', { reference: 'another' }],
    ['another amount', { amountMinor: 1n }],
    ['another currency', { currency: 'USD' }],
    ['no id', { authorizationId: '' }],
    ['no state', { state: AuthorizationState.AUTHORIZATION_STATE_UNSPECIFIED }],
    ['a state of tomorrow', { state: 99 as AuthorizationState }],
  ])('of an authorization are unclear where they name %s', async (_, change) => {
    authorize = (authorization) => ({ ...authorization, ...change });
    expectUnclear(await outcome(authorizer.authorize(asked, call())));
  });

  it.each<readonly [string, Partial<Refund>]>([
    ['another authorization', { authorizationId: 'another' }],
    ['another amount', { amountMinor: 1n }],
    ['no id', { refundId: '' }],
  ])('of a refund are unclear where they name %s', async (_, change) => {
    refund = (made) => ({ ...made, ...change });
    expectUnclear(await outcome(authorizer.refund(toRefund, call())));
  });

  it('are waited for no longer than the caller waits, and at least a second', async () => {
    authorize = () => 'nothing';
    for (const [remainingMs, leastMs] of [
      [1_200, 1_100],
      [-5_000, 900],
    ] as const) {
      const startedAt = performance.now();
      expectUnclear(await outcome(authorizer.authorize(asked, call(new Date(Date.now() + remainingMs)))));
      const tookMs = performance.now() - startedAt;
      expect(tookMs).toBeGreaterThan(leastMs);
      expect(tookMs).toBeLessThan(10_000);
    }
  });
});
