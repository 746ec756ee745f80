/**
 * The simulated card network as a process of its own: by itself (`node dist/card-network/main.js`), or started by the
 * payments service, with which it ends.
 */
import { runSimulator } from '../simulator-main';
import { readCardNetworkEnvironment } from './environment';
import { startCardNetwork } from './start-card-network';

runSimulator({
  name: 'card network',
  start: async () => startCardNetwork(readCardNetworkEnvironment(process.env)),
  stopWithinMs: 5_000,
});
