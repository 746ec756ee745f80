import { setTimeout as delay } from 'node:timers/promises';
import { startCardNetworkProcess } from '../../src/card-network/start-process';
import { startReceiptsProcess } from '../../src/receipts/start-process';
import { changedDescriptorSet } from '../support/descriptor-set';
import { type OwnPostgres, startOwnPostgres } from '../support/postgres';
import { childrenOf } from '../support/processes';
import type { Fault, PlannedFault } from './plan';
import { type ServiceSlot, startServiceSlot } from './service-slot';

/** What is tried: services with one database, and the world outside. */
export interface World {
  readonly database: OwnPostgres;
  /** Where callers reach the services. */
  readonly addresses: readonly string[];
  readonly cardNetworkAddress: string;
  /** How services ended that nobody had killed. */
  readonly crashes: readonly string[];
  /** Has everything planned happen, each at its time; resolves when all of it is over and every service runs. */
  suffer(plan: readonly PlannedFault[], onFault: (planned: PlannedFault) => void): Promise<void>;
  close(): Promise<void>;
}

/** Short, so that many attempts are overtaken; milliseconds. */
const LEASE_MS = 2_000;
/** How far the clocks of the services are ahead, in turn; milliseconds. */
const CLOCKS_AHEAD_MS = [0, 120_000, -120_000];

/** Starts everything, with a database that flushes what it commits. Close it. */
export async function startWorld(processes: number): Promise<World> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (const end of closers.splice(0).reverse()) await end();
  };
  try {
    return { ...(await startParts(processes, (end) => closers.push(end))), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startParts(
  processes: number,
  onClose: (end: () => Promise<unknown>) => void,
): Promise<Omit<World, 'close'>> {
  const database = await startOwnPostgres({ durable: true });
  onClose(() => database.drop());
  const { connectionString } = database;
  const simulators = [startCardNetworkProcess({ connectionString }), startReceiptsProcess({ connectionString })];
  onClose(() => Promise.all(simulators.map((simulator) => simulator.stop())));
  const [cardNetworkAddress = '', receiptsAddress = ''] = await Promise.all(simulators.map(({ address }) => address));
  const lease = { leaseMs: LEASE_MS };
  const descriptorSet = Buffer.from(changedDescriptorSet({ CreatePayment: lease, RefundPayment: lease }));
  const environment = {
    ...{ CARD_NETWORK_ADDRESS: cardNetworkAddress, RECEIPTS_ADDRESS: receiptsAddress },
    // Sooner than in production: a run is short.
    RESUME_INTERVAL_MS: '500',
  };
  const crashes: string[] = [];
  const slots: ServiceSlot[] = [];
  // One after the other, so that one that can't be started leaves none behind that still does.
  for (let index = 0; index < processes; index += 1) {
    const options = {
      ...{ connectionString, environment, descriptorSet: descriptorSet.toString('base64') },
      ...{ clockAheadMs: CLOCKS_AHEAD_MS[index % CLOCKS_AHEAD_MS.length] ?? 0, failsQuietly: true },
    };
    const slot = await startServiceSlot(options, (how) => crashes.push(`service ${index} ended by itself (${how})`));
    slots.push(slot);
    onClose(() => slot.close());
  }
  const strike = createStrikes(database, slots);
  return {
    ...{ database, cardNetworkAddress, crashes, addresses: slots.map(({ address }) => address) },
    suffer: async (plan, onFault) => {
      const beganAt = performance.now();
      const struck: Promise<void>[] = [];
      for (const planned of plan) {
        await delay(Math.max(0, beganAt + planned.atMs - performance.now()));
        onFault(planned);
        const blow = strike(planned.fault);
        // Whoever waits for all of them is told.
        blow.catch(() => undefined);
        struck.push(blow);
      }
      await Promise.all(struck);
    },
  };
}

/** Has a fault happen; resolves when it is over. The database is restarted once at a time. */
function createStrikes(database: OwnPostgres, slots: readonly ServiceSlot[]): (fault: Fault) => Promise<void> {
  let restarting = Promise.resolve();
  return async (fault) => {
    switch (fault.kind) {
      case 'service killed':
        return slotOf(slots, fault).kill(fault.downMs);
      case 'service frozen':
        return slotOf(slots, fault).freeze(fault.forMs);
      case 'callers cut':
        return slotOf(slots, fault).cutCallers();
      case 'database silent':
        return slotOf(slots, fault).silenceDatabase(fault.forMs);
      case 'commits lost':
        return slotOf(slots, fault).loseCommits(fault.how, fault.times);
      case 'database restarted':
        return (restarting = restarting.then(async () => {
          await database.stopServer(fault.mode);
          await delay(fault.downMs);
          await database.startServer();
        }));
      case 'card network killed':
        for (const pid of await childrenOf(process.pid, 'card-network/main')) process.kill(pid, 'SIGKILL');
    }
  };
}

function slotOf(slots: readonly ServiceSlot[], { process }: { readonly process: number }): ServiceSlot {
  const slot = slots[process];
  if (slot === undefined) throw new Error(`there is no process ${process}`);
  return slot;
}
