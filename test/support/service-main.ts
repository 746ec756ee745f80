/** The composition root of a service process under test: the service as it is, with an authorizer that a test controls. */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { startApp } from '../../src/app';
import { readConfig } from '../../src/config';
import { createLogger } from '../../src/ops/logger';
import { type Authorizer, createStandInAuthorizer } from '../../src/payments/authorizer';
import type { FromService, ServiceProcessOptions } from './service-process';
import { shiftClock } from './shift-clock';

async function main(options: ServiceProcessOptions): Promise<void> {
  const { connectionString, descriptorSet, authorizerDelayMs = 0, authorizerWaits = false, environment = {} } = options;
  const { authorizerBlocksMs = 0, clockAheadMs = 0 } = options;
  if (clockAheadMs !== 0) shiftClock(clockAheadMs);
  if (options.startsWhenTold) {
    tell({ type: 'loaded' });
    await once(process, 'message');
  }
  const standIn = createStandInAuthorizer();
  const proceed = new Promise<void>((resolve) => process.once('message', () => resolve()));
  let asked = 0;
  const authorizer: Authorizer = {
    ...standIn,
    authorize: async (request, call) => {
      tell({ type: 'asked', times: (asked += 1) });
      if (authorizerDelayMs > 0) await delay(authorizerDelayMs);
      if (authorizerBlocksMs > 0) keepBusy(authorizerBlocksMs);
      if (authorizerWaits) await proceed;
      return standIn.authorize(request, call);
    },
  };
  const app = await startApp({
    config: readConfig({ GRPC_PORT: '0', OPS_PORT: '0', DATABASE_URL: connectionString, ...environment }),
    logger: createLogger({ level: 'silent' }),
    ...(environment['RECEIPTS_ADDRESS'] === undefined ? { deliver: 'nobody' } : {}),
    ...(descriptorSet === undefined ? {} : { descriptorSet: Buffer.from(descriptorSet, 'base64') }),
    ...(environment['CARD_NETWORK_ADDRESS'] === undefined ? { authorizer } : {}),
  });
  process.once('SIGTERM', () => void app.stop().then(() => process.exit(0)));
  // A test that ends takes its processes with it, however it ends.
  process.once('disconnect', () => process.exit(1));
  tell({ type: 'ready', grpcPort: app.grpcPort, opsPort: app.opsPort });
}

/** Lets nothing else happen in this process: no timer, no answer, no renewal. */
function keepBusy(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

function tell(message: FromService): void {
  process.send?.(message);
}

main(JSON.parse(process.argv[2] ?? '{}') as ServiceProcessOptions).catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
