/**
 * The simulated card network as a process of its own: by itself (`node dist/card-network/main.js`), or started by the
 * payments service, with which it ends.
 */
import { assertPortIsFree } from '../port-obstacles';
import { runSimulator } from '../simulator-main';
import { readCardNetworkEnvironment } from './environment';
import { CARD_NETWORK_HOST, startCardNetwork } from './start-card-network';

runSimulator({
  name: 'card network',
  start: async () => {
    const options = readCardNetworkEnvironment(process.env);
    await assertPortIsFree(CARD_NETWORK_HOST, options.port, 'CARD_NETWORK');
    return startCardNetwork(options);
  },
  stopWithinMs: 5_000,
});
