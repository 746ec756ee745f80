import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { RelayOptions } from '../../src/outbox/relay-options';

/** What a relay process is started with; sent to it as JSON. */
export interface RelayProcessOptions {
  readonly connectionString: string;
  /** Where the receipts service listens. */
  readonly receiptsPort: number;
  /** Where the relay stands still for ever, having said so: once a delivery is confirmed, or once it is marked. */
  readonly stopsAt?: 'confirmed' | 'marked';
  readonly relay?: Omit<RelayOptions, 'client' | 'deliver' | 'onEvent' | 'random'>;
}

/** Messages of the process to the test. */
export type FromRelay = { readonly type: 'ready' | 'confirmed' | 'marked' };

/** A relay in an operating system process of its own. */
export interface RelayProcess {
  /** Resolves when it stands still where it was told to. */
  readonly stoodStill: Promise<void>;
  /** Ends the process without a chance to clean up. */
  kill(): Promise<void>;
}

/** Starts a relay that delivers receipts; resolves when it runs. */
export async function startRelayProcess(options: RelayProcessOptions): Promise<RelayProcess> {
  const child = fork(join(__dirname, 'relay-main.ts'), [JSON.stringify(options)], {
    execArgv: ['--import', 'tsx'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  let standStill = (): void => undefined;
  const stoodStill = new Promise<void>((resolve) => (standStill = resolve));
  await new Promise<void>((resolve, reject) => {
    void exited.then(() => reject(new Error('the relay ended before it was ready')));
    child.on('message', ({ type }: FromRelay) => (type === 'ready' ? resolve() : standStill()));
  });
  return {
    stoodStill,
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
