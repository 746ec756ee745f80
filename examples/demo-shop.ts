import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import { startApp } from '../src/app';
import { readConfig } from '../src/config';
import { connect } from '../src/database/connect';
import { startEmbeddedPostgres } from '../src/database/embedded-postgres';
import { type CreatePaymentResponse, PaymentsServiceClient } from '../src/gen/proto/payments/v1/payments';
import { readErrorDetails, REPLAYED, REQUEST_ID } from '../src/idempotency/index';
import { createLogger } from '../src/ops/logger';
import { createStandInAuthorizer } from '../src/payments/authorizer';

/** What a customer wants paid. */
export interface Intent {
  readonly requestId: string;
  readonly orderId: string;
  readonly amountMinor: bigint;
}

/** One attempt, as it ended: `paid`, `replayed`, or the reason of a refusal. */
export interface Attempt {
  readonly outcome: string;
}

/** A shop with a payments service behind it. */
export interface Shop {
  /** Sends one attempt, without any retry, and prints a line about it. */
  attempt(intent: Intent): Promise<Attempt>;
  /** From now on the card network is silent until `answer`; `asked` resolves when it was first asked. */
  holdAuthorizations(): { readonly asked: Promise<void>; readonly answer: () => void };
  /** How many payments there are, counted in the table. */
  countPayments(): Promise<number>;
  close(): Promise<void>;
}

/** Starts a service on free ports, with the database of DATABASE_URL or one that goes when the shop closes. */
export async function openShop(print: (line: string) => void): Promise<Shop> {
  const { connectionString, removeDatabase } = await openDatabase(print);
  const network = { held: Promise.resolve(), asked: (): void => undefined };
  const standIn = createStandInAuthorizer();
  const app = await startApp({
    config: readConfig({
      ...{ GRPC_PORT: '0', OPS_PORT: '0', DATABASE_URL: connectionString },
      // An interrupted scene may hold an authorization for ever.
      SHUTDOWN_GRACE_MS: '1000',
    }),
    logger: createLogger({ level: 'silent' }),
    authorizer: {
      authorize: async (request) => {
        network.asked();
        await network.held;
        return standIn.authorize(request);
      },
    },
  });
  const client = new PaymentsServiceClient(`127.0.0.1:${app.grpcPort}`, credentials.createInsecure());
  const database = connect({ connectionString });
  const countPayments = (): Promise<number> => database.business.payment.count();
  print('time          key       process  outcome              payments so far');

  return {
    countPayments,
    attempt: async (intent) => {
      const outcome = await payOnce(client, intent);
      const time = new Date().toISOString().slice(11, 23);
      const columns = [time, `…${intent.requestId.slice(-7)}`, String(process.pid).padEnd(7), outcome.padEnd(19)];
      print(`${columns.join('  ')}  ${await countPayments()}`);
      return { outcome };
    },
    holdAuthorizations: () => {
      let answer = (): void => undefined;
      network.held = new Promise((resolve) => (answer = resolve));
      const asked = new Promise<void>((resolve) => (network.asked = resolve));
      return { asked, answer };
    },
    close: async () => {
      client.close();
      await database.close();
      await app.stop();
      await removeDatabase();
    },
  };
}

function payOnce(client: PaymentsServiceClient, { requestId, orderId, amountMinor }: Intent): Promise<string> {
  const metadata = new Metadata();
  metadata.set(REQUEST_ID, requestId);
  const request = { orderId, amountMinor, currency: 'EUR', paymentMethod: 'tok_visa', metadata: {} };
  return new Promise((resolve, reject) => {
    let failure: ServiceError | null = null;
    const onAnswer = (error: ServiceError | null, _response: CreatePaymentResponse): void => {
      failure = error;
    };
    client
      .createPayment(request, metadata, { deadline: Date.now() + 10_000 }, onAnswer)
      .on('status', ({ metadata: trailers }) => {
        if (failure === null) return resolve(trailers.get(REPLAYED).length > 0 ? 'replayed' : 'paid');
        const { reason } = readErrorDetails(trailers);
        return reason === undefined ? reject(failure) : resolve(reason);
      });
  });
}

async function openDatabase(print: (line: string) => void) {
  const url = process.env['DATABASE_URL'];
  if (url !== undefined && url !== '') return { connectionString: url, removeDatabase: () => Promise.resolve() };
  const dataDirectory = await mkdtemp(join(tmpdir(), 'grpc-idempotency-demo-'));
  // As root, Postgres runs as another user, who must be able to enter.
  await chmod(dataDirectory, 0o755);
  const removeFiles = (): Promise<void> => rm(dataDirectory, { recursive: true, force: true });
  try {
    const postgres = await startEmbeddedPostgres({ dataDirectory, onLog: print });
    const removeDatabase = (): Promise<void> => postgres.stop().then(removeFiles);
    return { connectionString: postgres.connectionString, removeDatabase };
  } catch (error) {
    await removeFiles();
    throw error;
  }
}
