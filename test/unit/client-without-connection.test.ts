import { status } from '@grpc/grpc-js';
import { withoutConnection } from '../../src/idempotency/client/attempt-timeout';
import { metadataOf } from '../support/scripted-server';

const failed = { code: status.DEADLINE_EXCEEDED, details: 'Waiting for LB pick', metadata: metadataOf({}) };

test.each([
  ['dns:shop.test:50051', 29_996, 'no connection to shop.test:50051 within 30 s: does a server listen there?'],
  ['127.0.0.1:50051', 1_234, 'no connection to 127.0.0.1:50051 within 1.2 s: does a server listen there?'],
  [
    'dns://8.8.8.8/shop.test',
    15_000,
    'no connection to dns://8.8.8.8/shop.test within 15 s: does a server listen there?',
  ],
  ['unix:/run/shop', 15_000, 'no connection to unix:/run/shop within 15 s: does a server listen there?'],
  ['unknown', 2_000, 'no connection within 2 s: does the server listen?'],
])('of %s after %d ms it is said: %s', (peer, waitedMs, said) => {
  expect(withoutConnection(failed, peer, waitedMs)).toEqual({ ...failed, details: `Waiting for LB pick: ${said}` });
});
