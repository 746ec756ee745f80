import { readCardNetworkEnvironment } from '../../src/card-network/environment';
import { readConfig, SETTINGS } from '../../src/config';
import { readReceiptsConfig } from '../../src/receipts/receipts-config';
import type { Setting } from '../../src/settings';

/** What Kubernetes sets for every Service of a namespace, such as one that is called `receipts`. */
const LINK = 'tcp://10.0.0.1:1234';
const ADVICE =
  'expected a whole number from 0 to 65535 (Kubernetes sets such a variable for every Service of that name: set ' +
  'enableServiceLinks: false in the pod, or this variable in the container)';

const PORTS = Object.values<Setting<unknown>>(SETTINGS)
  .map(({ variable }) => variable)
  .filter((variable) => variable.endsWith('_PORT'));
const DATABASE = { DATABASE_URL: 'postgresql://h/d' };

describe('a port that Kubernetes has set', () => {
  it.each(PORTS)('is refused as %s, and it is said where it comes from', (variable) => {
    expect(() => readConfig({ [variable]: LINK })).toThrow(`${variable} is "${LINK}": ${ADVICE}`);
    expect(() => readConfig({ [variable]: 'udp://[fd00::1]:53' })).toThrow(ADVICE);
  });

  it('is one of four', () => {
    expect(PORTS).toEqual(['GRPC_PORT', 'OPS_PORT', 'CARD_NETWORK_PORT', 'RECEIPTS_PORT']);
  });

  it('is refused likewise by the simulators', () => {
    expect(() => readCardNetworkEnvironment({ ...DATABASE, CARD_NETWORK_PORT: LINK })).toThrow(
      `CARD_NETWORK_PORT is "${LINK}": ${ADVICE}`,
    );
    expect(() => readReceiptsConfig({ ...DATABASE, RECEIPTS_PORT: LINK })).toThrow(
      `RECEIPTS_PORT is "${LINK}": ${ADVICE}`,
    );
  });

  it('is not thought of where a port is wrong otherwise', () => {
    for (const wrong of ['http', '65536', '10.0.0.1:1234', 'http://10.0.0.1:1234']) {
      expect(() => readConfig({ GRPC_PORT: wrong })).toThrow(/expected a whole number from 0 to 65535$/);
    }
  });
});
