/** A process under test, put together from what it is in production, but that its calls to others wait for the test. */
import { credentials } from '@grpc/grpc-js';
import { startApp } from '../../src/app';
import { readConfig } from '../../src/config';
import { connect } from '../../src/database/connect';
import { createLogger } from '../../src/ops/logger';
import { createRelay } from '../../src/outbox/relay';
import type { Authorizer } from '../../src/payments/authorizer';
import { createRefundDelivery } from '../../src/payments/deliver-refund';
import { createNetworkAuthorizer } from '../../src/payments/network-authorizer';
import { createReceiptDelivery } from '../../src/receipts/deliver-receipt';
import { startReceipts } from '../../src/receipts/receipts-app';
import { createReceiptsClient } from '../../src/receipts/receipts-client';
import { changedDescriptorSet } from './descriptor-set';
import type { FromVictim, ToVictim, VictimOptions } from './victim-process';

/** No renewal is among the boundaries: they come at times of their own. */
const LEASE_MS = 600_000;
/** Each that stands still has a connection in its hands. */
const CONNECTIONS = '60';

const waiting = new Map<number, () => void>();
let runRound = (): Promise<unknown> => Promise.resolve();

/** Asks another service, and stands at both boundaries of that until the test says go. */
async function asking<Answer>(name: string, ask: () => Promise<Answer>): Promise<Answer> {
  await standAt(name, 'before');
  const answer = await ask();
  await standAt(name, 'after');
  return answer;
}

function standAt(name: string, point: 'before' | 'after'): Promise<void> {
  const id = waiting.size;
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    tell({ type: 'boundary', id, name, point });
  });
}

function networkAt(address: string): Authorizer {
  const network = createNetworkAuthorizer({ address });
  return {
    authorize: (request, call) => asking('call Authorize', () => network.authorize(request, call)),
    refund: (request, call) => asking('call Refund', () => network.refund(request, call)),
  };
}

async function serve(options: VictimOptions): Promise<number> {
  const { connectionString } = options;
  switch (options.role) {
    case 'payments': {
      const authorizer = networkAt(options.networkAddress);
      const app = await startApp({
        config: readConfig({
          ...{ GRPC_PORT: '0', OPS_PORT: '0', DATABASE_URL: connectionString, RESUME_INTERVAL_MS: '0' },
          ...{ BUSINESS_POOL_SIZE: CONNECTIONS, STORE_POOL_SIZE: CONNECTIONS },
        }),
        descriptorSet: changedDescriptorSet({
          CreatePayment: { leaseMs: LEASE_MS },
          RefundPayment: { leaseMs: LEASE_MS },
        }),
        ...{ logger: createLogger({ level: 'silent' }), authorizer, deliver: 'nobody' },
      });
      return app.grpcPort;
    }
    case 'relay': {
      const { business: client } = connect({ connectionString, businessPoolSize: Number(CONNECTIONS) });
      const receipts = createReceiptsClient(options.receiptsAddress, {
        ...{ credentials: credentials.createInsecure(), timeoutMs: LEASE_MS, attemptTimeoutMs: LEASE_MS },
      });
      const sending = createReceiptDelivery(receipts);
      const deliver = createRefundDelivery(
        { prisma: client, authorizer: networkAt(options.networkAddress) },
        (event, context) => asking('call SendReceipt', () => sending(event, context)),
      );
      const patient = { deliveryTimeoutMs: LEASE_MS / 2, leaseMs: LEASE_MS, batchSize: 1 };
      runRound = () => createRelay({ client, deliver, ...patient }).runOnce();
      return 0;
    }
    case 'receipts': {
      const receipts = await startReceipts({
        ...{ connectionString, host: '127.0.0.1', port: 0, principal: () => 'local' },
      });
      return receipts.port;
    }
  }
}

function tell(message: FromVictim): void {
  process.send?.(message);
}

process.on('message', (message: ToVictim) => {
  if (message.type === 'round') void runRound().then(() => tell({ type: 'round_ended', id: message.id }));
  else waiting.get(message.id)?.();
});
// A test that ends takes its processes with it, however it ends.
process.once('disconnect', () => process.exit(1));
serve(JSON.parse(process.argv[2] ?? '{}') as VictimOptions).then(
  (port) => tell({ type: 'ready', port }),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
