/** A relay under test: delivers receipts, and stands still where a test wants to kill it. */
import { connect } from '../../src/database/connect';
import { credentials, type SqlClient } from '../../src/idempotency/index';
import { createRelay } from '../../src/outbox/relay';
import { createReceiptDelivery } from '../../src/receipts/deliver-receipt';
import { createReceiptsClient } from '../../src/receipts/receipts-client';
import type { FromRelay, RelayProcessOptions } from './relay-process';

const {
  connectionString,
  receiptsPort,
  stopsAt,
  relay: options,
} = JSON.parse(process.argv[2] ?? '{}') as RelayProcessOptions;
const { business } = connect({ connectionString });
const receipts = createReceiptsClient(`127.0.0.1:${receiptsPort}`, { credentials: credentials.createInsecure() });
const deliver = createReceiptDelivery(receipts);
const never = new Promise<never>(() => undefined);
let isMarked = false;

const client: SqlClient = {
  $queryRawUnsafe: (text, ...values) =>
    isMarked && stopsAt === 'marked' ? never : business.$queryRawUnsafe(text, ...values),
};
const relay = createRelay({
  ...options,
  client,
  deliver: async (event, context) => {
    await deliver(event, context);
    if (stopsAt !== 'confirmed') return;
    tell({ type: 'confirmed' });
    await never;
  },
  onEvent: (event) => {
    if (event.type === 'fault') console.error(event.error);
    if (event.type !== 'delivered' || stopsAt !== 'marked') return;
    isMarked = true;
    tell({ type: 'marked' });
  },
});

function tell(message: FromRelay): void {
  process.send?.(message);
}

// A test that ends takes its processes with it, however it ends.
process.once('disconnect', () => process.exit(1));
relay.start();
tell({ type: 'ready' });
