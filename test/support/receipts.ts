import type { ServerEvent } from '../../src/idempotency/index';
import { startReceipts } from '../../src/receipts/receipts-app';

/** A receipts service in this process, and what it told. */
export interface TestReceipts {
  readonly port: number;
  /** How calls were received, in order. */
  readonly outcomes: readonly string[];
  stop(): Promise<void>;
}

/** Starts the receipts service on a free port; everybody is the account `local`. */
export async function startTestReceipts(connectionString: string): Promise<TestReceipts> {
  const outcomes: string[] = [];
  const onEvent = (event: ServerEvent): void => {
    if (event.type === 'admitted') outcomes.push(event.outcome);
  };
  const receipts = await startReceipts({
    ...{ connectionString, host: '127.0.0.1', port: 0, principal: () => 'local', onEvent },
  });
  return { port: receipts.port, outcomes, stop: receipts.stop };
}
