/**
 * The receipts simulator as a process of its own: by itself (`node dist/receipts/main.js`), or started by the payments
 * service, with which it ends.
 */
import { prepareSchema } from '../database/prepare-schema';
import { callerIdentity } from '../identity/caller-identity';
import { isLoopback } from '../loopback';
import { createLogger, logServerEvents } from '../ops/logger';
import { assertPortIsFree } from '../port-obstacles';
import { runSimulator } from '../simulator-main';
import { type Receipts, startReceipts } from './receipts-app';
import { readReceiptsConfig } from './receipts-config';

/** How long running calls may take to finish at a stop, milliseconds. */
const GRACE_MS = 30_000;
const CHILD_GRACE_MS = 500;

/** @param isChild the database is migrated, and of the log only what somebody should look at goes to the standard error */
async function start(isChild: boolean): Promise<Receipts> {
  const { host, port, databaseUrl: connectionString, tokensFile } = readReceiptsConfig(process.env);
  await assertPortIsFree(host, port, 'RECEIPTS');
  const logger = isChild
    ? createLogger({ level: 'warn', destination: process.stderr })
    : createLogger({ level: 'info' });
  const { principal, warnings } = callerIdentity({ tokensFile, reachable: !isLoopback(host) });
  if (!isChild) for (const warning of warnings) logger.warn(warning);
  process.on('unhandledRejection', (error) => logger.error(error, 'a promise was rejected and nobody looked'));
  await prepareSchema(isChild ? 'never' : 'run', { connectionString });
  return startReceipts({
    ...{ connectionString, host, port, principal, shutdownGraceMs: isChild ? CHILD_GRACE_MS : GRACE_MS },
    onEvent: logServerEvents(logger),
    onError: (error, what) => logger.warn({ err: error }, what),
  });
}

runSimulator({ name: 'receipts', start, stopWithinMs: GRACE_MS + 5_000 });
