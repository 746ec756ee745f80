import './require-node';
import { startApp } from './app';
import { readConfig } from './config';
import { misspelledSettings } from './misspelled-settings';
import { createLogger } from './ops/logger';
import { settingsHelp } from './settings-table';
import { OperatorError } from './operator-error';

/** Starts the service, and stops it at SIGTERM or Ctrl-C. */
async function main(args: readonly string[]): Promise<void> {
  if (args.length > 0) return answerArguments(args);
  const config = readConfig(process.env);
  const logger = createLogger({ level: config.logLevel });
  for (const misspelled of misspelledSettings(process.env)) {
    logger.warn(misspelled, `${misspelled.variable} is no setting and is not read; was ${misspelled.nearest} meant?`);
  }
  // A stray promise of one handler must not end the calls of all others. Nothing it did can be part of an answer: every
  // completion is sealed and fenced.
  process.on('unhandledRejection', (error) => logger.error(error, 'a promise was rejected and nobody looked'));

  let isStopping = false;
  const onDatabaseEnded = (log: string): void => {
    // Whoever stops a group of processes may stop the database with the others: that is no news.
    if (!isStopping) fail(new DatabaseEnded(log));
  };
  const starting = startApp({ config, logger, onDatabaseEnded });
  const stopOnce = oneTime(starting, async (signal: string) => {
    isStopping = true;
    logger.info({ signal }, 'stopping: running calls end first');
    await (await starting).stop();
    logger.info('stopped');
    process.exit(0);
  });
  // From the first moment on: half a start would leave half of its parts running.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stopOnce(signal));
  const app = await starting;

  const address = `${config.grpcHost}:${app.grpcPort}`;
  const forExample = address === '127.0.0.1:50051' ? '' : `PAYMENTS_ADDRESS=${address} `;
  console.log(
    `ready: gRPC on ${address}, metrics on http://${config.opsHost}:${app.opsPort}/metrics\n` +
      `try:   ${forExample}node examples/first-payment.js`,
  );
}

/** Nothing can be answered any more; whoever starts the service again starts the database with it. */
class DatabaseEnded extends OperatorError {
  override readonly name = 'DatabaseEnded';

  constructor(log: string) {
    super(
      `The embedded database has ended by itself. Its log is ${log}; start the service again when what it says is repaired.`,
    );
  }
}

/** Everything is set by the environment: the one argument asks by which variables. */
function answerArguments([argument, ...others]: readonly string[]): void {
  if (argument === '--help' && others.length === 0) return console.log(settingsHelp());
  console.error('The service takes no arguments; --help prints the environment variables that it reads.');
  process.exitCode = 2;
}

/** A second signal changes nothing once the start is over; before, it ends a start that may be stuck. */
function oneTime(starting: Promise<unknown>, stop: (signal: string) => Promise<void>): (signal: string) => void {
  let stopping: Promise<void> | undefined;
  let isStarting = true;
  const startIsOver = (): void => void (isStarting = false);
  starting.then(startIsOver, startIsOver);
  return (signal) => {
    if (stopping !== undefined && isStarting) fail(new OperatorError(`ended by a second ${signal} during the start`));
    if (stopping === undefined) stopping = stop(signal).catch(fail);
  };
}

/** What the operator can repair is one message; a broken promise of ours comes with its stack. */
function fail(error: unknown): never {
  console.error(error instanceof OperatorError ? error.message : error);
  process.exit(1);
}

main(process.argv.slice(2)).catch(fail);
