import { parseArgs } from 'node:util';
import { startCardNetworkProcess } from '../card-network/start-process';
import { type Config, readConfig } from '../config';
import { connect } from '../database/connect';
import { IdempotencyError } from '../idempotency/index';
import { OperatorError } from '../operator-error';
import { needsSomebody, type Report } from '../reconciliation/findings';
import { openReconciler } from '../reconciliation/reconciler';
import { reportJson, reportLines } from '../reconciliation/report';
import { type Command, type CommandContext, EXIT, UsageError } from './command';
import { withDatabase } from './command-database';

const DATE = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/;

/** `reconcile`: compares our payments with the card network's charges, and repairs what differs on request. */
export const reconcileCommand: Command = {
  name: 'reconcile',
  usage: '[--since <date>] [--json] [--dry-run | --repair]',
  summary: 'compare payments with the charges of the card network, and repair what differs',
  details: [
    'those of the last 7 days, or since a date or time; drafts of any age; the network is that of CARD_NETWORK_ADDRESS',
    'without --repair it only looks; --json prints one line for programs',
    '--repair records orphaned charges or gives them back, cancels payments that are duplicates or without a charge,',
    'and removes drafts that nobody goes on with, so that their orders can be paid; run twice it repairs once',
    'exits with 1 while something that was found is not repaired',
  ],
  example: 'grpc-idempotency reconcile --since 2026-01-31T08:00:00Z --repair',
  run: async (context) => {
    const { since, json, repair } = readWords(context);
    const config = readConfig(context.environment);
    const use = { config, announce: json ? undefined : context.printError };
    const report = await withDatabase(use, (connectionString) =>
      withNetwork(config, connectionString, (address) => run({ connectionString, address, since, repair })),
    );
    const lines = json ? [reportJson(report)] : reportLines(report);
    for (const line of lines) context.print(line);
    return needsSomebody(report) ? EXIT.refused : EXIT.ok;
  },
};

interface Words {
  /** Undefined for the default. */
  readonly since: Date | undefined;
  readonly json: boolean;
  readonly repair: boolean;
}

/** Understands the words before anything is connected. */
function readWords({ args }: CommandContext): Words {
  const { values } = parseArgs({
    args: [...args],
    options: {
      since: { type: 'string' },
      json: { type: 'boolean', default: false },
      repair: { type: 'boolean', default: false },
      'dry-run': { type: 'boolean', default: false },
    },
  });
  const { since, json, repair, 'dry-run': dryRun } = values;
  if (repair && dryRun) throw new UsageError('--dry-run only looks, and --repair repairs: expected one of them');
  return { since: since === undefined ? undefined : readDate(since), json, repair };
}

function readDate(text: string): Date {
  const date = new Date(text);
  // Without a zone a time would mean another one on another machine; a date alone is UTC.
  if (!DATE.test(text) || Number.isNaN(date.getTime()) || date.getTime() > Date.now()) {
    throw new UsageError('--since: expected a date or time that is over, such as 2026-01-31 or 2026-01-31T08:00:00Z');
  }
  return date;
}

/** The network that the service would ask; the simulator is started for it, and stopped. */
async function withNetwork<Result>(
  { cardNetworkAddress }: Config,
  connectionString: string,
  work: (address: string) => Promise<Result>,
): Promise<Result> {
  if (cardNetworkAddress !== undefined) return work(cardNetworkAddress);
  const simulator = startCardNetworkProcess({ connectionString });
  try {
    return await work(await simulator.address);
  } finally {
    await simulator.stop();
  }
}

interface Run {
  readonly connectionString: string;
  /** Of the card network. */
  readonly address: string;
  readonly since: Date | undefined;
  readonly repair: boolean;
}

async function run({ connectionString, address, since, repair }: Run): Promise<Report> {
  const database = connect({ connectionString });
  try {
    const { business: prisma, store: records } = database;
    const reconciler = await openReconciler({ prisma, records, networkAddress: address });
    try {
      return await reconciler.run({ since, repair });
    } finally {
      reconciler.close();
    }
  } catch (error) {
    // Failures of repairs are in the report: this one came from reading.
    if (!(error instanceof IdempotencyError)) throw error;
    throw new OperatorError(`the books of the card network at ${address} could not be read: ${error.message}`);
  } finally {
    await database.close();
  }
}
