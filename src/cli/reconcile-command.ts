import { startCardNetworkProcess } from '../card-network/start-process';
import { type Config, readConfig } from '../config';
import { connect } from '../database/connect';
import { IdempotencyError } from '../idempotency/index';
import { OperatorError } from '../operator-error';
import { orderNeedsSomebody } from '../reconciliation/compare-order';
import { needsSomebody } from '../reconciliation/findings';
import { orderJson, orderLines } from '../reconciliation/order-report';
import { openReconciler, type Reconciler } from '../reconciliation/reconciler';
import { reportJson, reportLines } from '../reconciliation/report';
import { type Command, EXIT } from './command';
import { withTables } from './command-database';
import { readReconcileWords, type ReconcileWords } from './reconcile-words';

/** `reconcile`: compares our payments with the card network's charges, and repairs what differs on request. */
export const reconcileCommand: Command = {
  name: 'reconcile',
  usage: '[--since <date>] [--json] [--dry-run | --repair] | --order <order id> --scope <account> [--json]',
  summary: 'compare payments with the charges of the card network, and repair what differs',
  details: [
    'those of the last 7 days, or since a date or time; drafts of any age; the network is that of CARD_NETWORK_ADDRESS',
    'without --repair it only looks; --json prints one line for programs',
    '--repair records orphaned charges or gives them back, cancels payments that are duplicates or without a charge,',
    'removes drafts that nobody goes on with, so that their orders can be paid, carries out refunds that nobody goes on',
    'with, and gives back what is still held of cancelled payments; run twice it repairs once',
    '--order shows all that both have of one order, of any age, and whether it was charged twice; it only looks',
    'exits with 1 while something that was found is not repaired, and where nothing is known of the order',
  ],
  example: 'grpc-idempotency reconcile --since 2026-01-31T08:00:00Z --repair',
  run: async ({ args, environment, print, printError }) => {
    const words = readReconcileWords(args);
    const config = readConfig(environment);
    const use = { config, announce: words.json ? undefined : printError };
    const { lines, needsSomebody } = await withTables(use, (connectionString) =>
      withNetwork(config, connectionString, (address) => compare(words, connectionString, address)),
    );
    for (const line of lines) print(line);
    return needsSomebody ? EXIT.refused : EXIT.ok;
  },
};

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

/** What is printed, and whether somebody has to look at it. */
interface Compared {
  readonly lines: readonly string[];
  readonly needsSomebody: boolean;
}

async function compare(words: ReconcileWords, connectionString: string, address: string): Promise<Compared> {
  const database = connect({ connectionString });
  try {
    const { business: prisma, store: records } = database;
    const reconciler = await openReconciler({ prisma, records, networkAddress: address });
    try {
      return await compareWith(reconciler, words);
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

async function compareWith(reconciler: Reconciler, words: ReconcileWords): Promise<Compared> {
  switch (words.kind) {
    case 'all': {
      const { since, repair } = words;
      const report = await reconciler.run({ since, repair });
      return { lines: words.json ? [reportJson(report)] : reportLines(report), needsSomebody: needsSomebody(report) };
    }
    case 'order': {
      const report = await reconciler.compareOrder(words.order);
      const lines = words.json ? [orderJson(report)] : orderLines(report);
      return { lines, needsSomebody: orderNeedsSomebody(report) };
    }
  }
}
