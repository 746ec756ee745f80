import { type Authorization, AuthorizationState, type Refund } from '../gen/proto/cardnetwork/v1/cardnetwork';
import type { CardNetworkAuthorizationModel } from '../gen/prisma/models/CardNetworkAuthorization';
import type { CardNetworkRefundModel } from '../gen/prisma/models/CardNetworkRefund';
import { timestamp } from '../timestamp';

/** The message that an account sees of its authorization. */
export function authorizationMessage(row: CardNetworkAuthorizationModel, refundedMinor: bigint): Authorization {
  const { authorizationId, reference, requestId, amountMinor, currency, declineReason } = row;
  return {
    ...{ authorizationId, reference, requestId, amountMinor, currency, declineReason, refundedMinor },
    state: stateMessage(row.state),
    createTime: timestamp(row.createdAt),
  };
}

/** The message that an account sees of its refund. */
export function refundMessage(row: CardNetworkRefundModel): Refund {
  const { refundId, authorizationId, requestId, amountMinor } = row;
  return { refundId, authorizationId, requestId, amountMinor, createTime: timestamp(row.createdAt) };
}

function stateMessage(state: string): AuthorizationState {
  switch (state) {
    case 'authorized':
      return AuthorizationState.AUTHORIZATION_STATE_AUTHORIZED;
    case 'declined':
      return AuthorizationState.AUTHORIZATION_STATE_DECLINED;
    default:
      throw new Error(`unknown state of an authorization: ${state}`);
  }
}
