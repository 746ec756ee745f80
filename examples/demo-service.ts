/** One of the demo's two processes: the service as it is, with a card network that falls silent when told to. */
import { startApp } from '../src/app';
import { readConfig } from '../src/config';
import { descriptorSet } from '../src/gen/descriptor-set';
import { createLogger } from '../src/ops/logger';
import { createStandInAuthorizer } from '../src/payments/authorizer';
import type { DemoServiceOptions, FromDemoService, ToDemoService } from './demo-messages';
import { withLease } from './short-lease';

async function main({ connectionString, leaseSeconds }: DemoServiceOptions): Promise<void> {
  // Only the demo decides when a service ends; a Ctrl-C in the terminal reaches all three.
  process.on('SIGINT', () => undefined);
  process.once('disconnect', () => process.exit(1));

  const network = { held: Promise.resolve(), answer: (): void => undefined };
  const standIn = createStandInAuthorizer();
  const app = await startApp({
    config: readConfig({
      ...{ GRPC_PORT: '0', OPS_PORT: '0', DATABASE_URL: connectionString },
      // An interrupted scene may hold an authorization for ever.
      SHUTDOWN_GRACE_MS: '1000',
    }),
    logger: createLogger({ level: 'silent' }),
    // The scenes end at the payment.
    deliver: 'nobody',
    descriptorSet: withLease(descriptorSet, 'CreatePayment', leaseSeconds),
    authorizer: {
      ...standIn,
      authorize: async (request, call) => {
        tell({ type: 'asked' });
        await network.held;
        return standIn.authorize(request, call);
      },
    },
  });

  process.on('message', ({ type }: ToDemoService) => {
    switch (type) {
      case 'hold':
        network.held = new Promise((resolve) => (network.answer = resolve));
        tell({ type: 'held' });
        return;
      case 'answer':
        network.answer();
        return;
      case 'stop':
        void app.stop().then(() => process.exit(0));
    }
  });
  tell({ type: 'ready', grpcPort: app.grpcPort });
}

function tell(message: FromDemoService): void {
  process.send?.(message);
}

main(JSON.parse(process.argv[2] ?? '{}') as DemoServiceOptions).catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
