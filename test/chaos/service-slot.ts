import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type CommitProxy, startCommitProxy } from '../support/commit-proxy';
import type { ConnectionFault } from '../support/connection-faults';
import { type CuttingProxy, startCuttingProxy } from '../support/cutting-proxy';
import { type ServiceProcess, type ServiceProcessOptions, startServiceProcess } from '../support/service-process';

/** A place of one service: its processes come and go, its address and its way to the database stay. */
export interface ServiceSlot {
  /** Where callers reach it, while it runs. */
  readonly address: string;
  /** Each resolves when what it did is over. */
  kill(downMs: number): Promise<void>;
  freeze(forMs: number): Promise<void>;
  cutCallers(): void;
  silenceDatabase(forMs: number): Promise<void>;
  loseCommits(how: ConnectionFault, times: number): Promise<void>;
  close(): Promise<void>;
}

/** How long a commit that stalls is kept: beyond the 5 s after which its connection is given up, or not. Milliseconds. */
const STALLED_MS = [1_000, 6_000] as const;

/**
 * Starts a service; resolves when it is ready.
 *
 * @param onCrash told where a process ends that nobody has killed, with its exit code or signal
 */
export async function startServiceSlot(
  options: ServiceProcessOptions,
  onCrash: (how: number | NodeJS.Signals) => void,
): Promise<ServiceSlot> {
  const port = await freePort();
  const way: CommitProxy = await startCommitProxy(options.connectionString);
  const front: CuttingProxy = await startCuttingProxy(port);
  const connectionString = way.connectionString;
  const environment = { ...options.environment, GRPC_PORT: String(port) };
  const killed = new Set<ServiceProcess>();
  let isClosed = false;
  let stalls = 0;

  /** Until it is ready: while the database is away a start fails, as it should. */
  const start = async (mostTries = 100): Promise<ServiceProcess> => {
    for (let tries = 1; ; tries += 1) {
      try {
        const started = await startServiceProcess({ ...options, connectionString, environment });
        void started.exited.then((how) => {
          if (!killed.has(started)) onCrash(how);
        });
        return started;
      } catch (error) {
        if (isClosed || tries >= mostTries) throw error;
        await delay(100);
      }
    }
  };
  // Nothing is broken yet: a first start that fails would fail for ever.
  let running: Promise<ServiceProcess> = start(1);
  await running;

  return {
    address: front.address,
    kill: async (downMs) => {
      // One after the other: whoever is to be killed twice has to come back in between.
      running = running.then(async (victim) => {
        killed.add(victim);
        victim.kill('SIGKILL');
        await victim.exited;
        await delay(downMs);
        return start();
      });
      await running;
    },
    freeze: async (forMs) => {
      const frozen = await running;
      frozen.kill('SIGSTOP');
      await delay(forMs);
      frozen.kill('SIGCONT');
    },
    cutCallers: () => front.cut(),
    silenceDatabase: async (forMs) => {
      const letThrough = way.freeze();
      await delay(forMs);
      letThrough();
    },
    loseCommits: async (how, times) => {
      const lost = way.on('COMMIT', how, times);
      await Promise.race([lost.happened(times), delay(2_000)]);
      lost.end();
      if (how.startsWith('stall')) await delay(STALLED_MS[(stalls += 1) % STALLED_MS.length]);
      lost.letThrough();
    },
    close: async () => {
      isClosed = true;
      const last = await running;
      killed.add(last);
      last.kill('SIGKILL');
      await last.exited;
      front.close();
      way.close();
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
