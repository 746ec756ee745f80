/** A caller under test: makes or finds keys of intents, and pays with them. A test tells it what to do, and kills it. */
import { connect } from '../../src/database/connect';
import { createIntents, credentials } from '../../src/idempotency/index';
import { createPaymentsClient } from '../../src/payments/payments-client';
import type { FromCaller, IntentCallerOptions, ToCaller } from './intent-caller';

const { connectionString, poolSize = 10, grpcPort = 0 } = JSON.parse(process.argv[2] ?? '{}') as IntentCallerOptions;
const { business: client } = connect({ connectionString, businessPoolSize: poolSize });
const intents = createIntents({ client, producer: 'shop' });
const payments = createPaymentsClient(`127.0.0.1:${grpcPort}`, { credentials: credentials.createInsecure() });

async function find(draftId: string, times: number): Promise<void> {
  const found = await Promise.all(Array.from({ length: times }, () => intents.requestIdFor('pay', draftId)));
  tell({ type: 'found', requestIds: found.map(({ requestId }) => requestId) });
}

async function pay(draftId: string): Promise<void> {
  const intent = await intents.requestIdFor('pay', draftId);
  if (intent.kind === 'expired') throw new Error(`the key of ${draftId} is expired`);
  const { requestId } = intent;
  const request = { orderId: draftId, amountMinor: 1250n, currency: 'EUR', paymentMethod: 'tok_visa', metadata: {} };
  let replayed = false;
  const onEnd = (end: { readonly replayed: boolean }): void => void (replayed = end.replayed);
  const { payment } = await payments.createPayment(request, { requestId, onEnd });
  await intents.finish(intent);
  tell({ type: 'paid', requestId, replayed, paymentId: payment?.paymentId ?? '' });
}

function tell(message: FromCaller): void {
  process.send?.(message);
}

process.on('message', (message: ToCaller) => {
  const done = message.type === 'find' ? find(message.draftId, message.times) : pay(message.draftId);
  done.catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
});
// A test that ends takes its processes with it, however it ends.
process.once('disconnect', () => process.exit(1));
tell({ type: 'ready' });
