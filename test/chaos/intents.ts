import { setTimeout as delay } from 'node:timers/promises';
import { credentials, status } from '@grpc/grpc-js';
import { IdempotencyError, newRequestId, readErrorDetails } from '../../src/idempotency/index';
import {
  CreatePaymentResponse,
  type RefundPaymentRequest,
  RefundPaymentResponse,
} from '../../src/gen/proto/payments/v1/payments';
import { createPaymentsClient, type PaymentsClient } from '../../src/payments/payments-client';

/** What somebody wants once, with all that was answered to it. */
export interface Intent {
  readonly kind: 'payment' | 'refund';
  readonly requestId: string;
  /** The order of a payment, the payment of a refund. */
  readonly of: string;
  readonly amountMinor: bigint;
  /** Every final answer: the response's bytes (base64), or a refusal's reason. They must all be equal. */
  readonly answers: string[];
  /** The payment or refund that was made; undefined without an OK. */
  made: string | undefined;
  /** Answers that left it open, so that it was asked for again. */
  retries: number;
}

/** Asks services for what intents want, each under one key. */
export interface Asker {
  pay(orderId: string): Intent;
  refund(paymentId: string, amountMinor: bigint): Intent;
  /** Asks the `n`th service, then others, under the same key, until there is a final answer; it is kept in the intent. */
  ask(intent: Intent, n: number): Promise<void>;
  close(): void;
}

/** How long one call may take with all that the client does about its failures, milliseconds. */
const CALL_TIMEOUT_MS = 4_000;

/** Makes one for services; `giveUp` ends all asking. */
export function createAsker(addresses: readonly string[], giveUp: AbortSignal): Asker {
  const clients = addresses.map((address) =>
    createPaymentsClient(address, {
      ...{ credentials: credentials.createInsecure(), timeoutMs: CALL_TIMEOUT_MS, attemptTimeoutMs: 2_500 },
    }),
  );
  const intent = (kind: Intent['kind'], of: string, amountMinor: bigint): Intent => ({
    ...{ kind, requestId: newRequestId(), of, amountMinor, answers: [], made: undefined, retries: 0 },
  });
  return {
    pay: (orderId) => intent('payment', orderId, 1_250n),
    refund: (paymentId, amountMinor) => intent('refund', paymentId, amountMinor),
    ask: async (asked, first) => {
      for (let n = first; !giveUp.aborted; n += 1) {
        const outcome = await call(clients[n % clients.length] as PaymentsClient, asked);
        if (outcome === undefined) {
          asked.retries += 1;
          await delay(50);
          continue;
        }
        asked.answers.push(outcome.answer);
        asked.made ??= outcome.made;
        return;
      }
    },
    close: () => {
      for (const client of clients) client.close();
    },
  };
}

interface Outcome {
  readonly answer: string;
  readonly made?: string | undefined;
}

/** One call; undefined where it left open what became of the intent. */
async function call(client: PaymentsClient, intent: Intent): Promise<Outcome | undefined> {
  try {
    return intent.kind === 'payment' ? await pay(client, intent) : await refund(client, intent);
  } catch (error) {
    if (!(error instanceof IdempotencyError)) throw error;
    if (error.outcomeUnknown || COME_AGAIN.includes(error.code)) return undefined;
    return { answer: `refused: ${readErrorDetails(error.metadata).reason ?? error.message}` };
  }
}

/** Codes after which nothing is settled yet. */
const COME_AGAIN: readonly status[] = [status.ABORTED, status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.CANCELLED];

async function pay(client: PaymentsClient, { requestId, of, amountMinor }: Intent): Promise<Outcome> {
  const request = { orderId: of, amountMinor, currency: 'EUR', paymentMethod: 'tok_visa', metadata: {} };
  const response = await client.createPayment(request, { requestId });
  return { answer: textOf(CreatePaymentResponse.encode(response).finish()), made: response.payment?.paymentId };
}

async function refund(client: PaymentsClient, { requestId, of, amountMinor }: Intent): Promise<Outcome> {
  const request: RefundPaymentRequest = { paymentId: of, amountMinor, reason: 'chaos' };
  const response = await client.refundPayment(request, { requestId });
  return { answer: textOf(RefundPaymentResponse.encode(response).finish()), made: response.refund?.refundId };
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
