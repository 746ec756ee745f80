import { startCardNetwork, type CardNetwork } from '../../src/card-network/start-card-network';
import type { NetworkFault } from '../../src/card-network/faults';
import type { Authorizer, NetworkCallContext } from '../../src/payments/authorizer';
import { createNetworkAuthorizer, type NetworkAuthorizer } from '../../src/payments/network-authorizer';
import { createTestDatabase, type TestDatabase } from './postgres';
import { startTestService, type TestService, type TestServiceOptions } from './service';
import { createStockClient, type StockClient } from './stock-client';

/** Where a test may hold a request to the card network: before it is sent, or when its answer has arrived. */
export type NetworkPoint = 'before' | 'after';

/** Called at each point with the number of the request, from 1; what it waits for holds the request. */
export type AtPoint = (point: NetworkPoint, time: number) => Promise<void>;

/** The payments service with the simulated card network behind it, on a database of their own. */
export interface PaymentsWithNetwork {
  readonly database: TestDatabase;
  readonly network: CardNetwork;
  readonly service: TestService;
  readonly client: StockClient;
  /** What goes wrong with the next calls of the network, in turn; then nothing. */
  readonly faults: NetworkFault[];
  /** Why the next cards are declined, in turn; undefined for one that is not. Then none is. */
  readonly decisions: (string | undefined)[];
  /** The keys that the service has asked the network under, one for each effect that was run. */
  readonly keysAsked: string[];
  /** Methods of the calls that reached the network, with those that were retried. */
  readonly arrived: string[];
  /** Holds requests to the network. Default: none. */
  hold(atPoint: AtPoint): void;
  stop(): Promise<void>;
}

/** Starts both on free ports. Call `stop` in `afterAll`. */
export async function startPaymentsWithNetwork(
  options: Pick<TestServiceOptions, 'environment' | 'deliver'> & { readonly networkTimeoutMs?: number } = {},
): Promise<PaymentsWithNetwork> {
  const database = await createTestDatabase();
  const faults: NetworkFault[] = [];
  const decisions: (string | undefined)[] = [];
  const keysAsked: string[] = [];
  const arrived: string[] = [];
  let atPoint: AtPoint = () => Promise.resolve();
  const { connectionString } = database;
  const network = await startCardNetwork({
    connectionString,
    nextFault: () => faults.shift() ?? { kind: 'ok' },
    decide: () => decisions.shift(),
    onCall: ({ method }) => arrived.push(method),
  });
  const { networkTimeoutMs: timeoutMs, environment = {}, deliver } = options;
  const asking = createNetworkAuthorizer({
    address: network.address,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  const authorizer = heldAt(asking, keysAsked, (point, time) => atPoint(point, time));
  const service = await startTestService({
    ...{ connectionString, authorizer, environment },
    ...(deliver === undefined ? {} : { deliver }),
  });
  const client = createStockClient(service.grpcPort);
  return {
    ...{ database, network, service, client, faults, decisions, keysAsked, arrived },
    hold: (next) => (atPoint = next),
    stop: async () => {
      client.close();
      await service.stop();
      asking.close();
      await network.stop();
      await database.drop();
    },
  };
}

function heldAt(asking: NetworkAuthorizer, keysAsked: string[], atPoint: AtPoint): Authorizer {
  const held = async <Answer>({ requestId }: NetworkCallContext, ask: () => Promise<Answer>): Promise<Answer> => {
    const time = keysAsked.push(requestId);
    await atPoint('before', time);
    const answer = await ask();
    await atPoint('after', time);
    return answer;
  };
  return {
    authorize: (request, call) => held(call, () => asking.authorize(request, call)),
    refund: (request, call) => held(call, () => asking.refund(request, call)),
  };
}
