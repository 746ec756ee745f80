import { Metadata, type ServerUnaryCall, status } from '@grpc/grpc-js';
import { newRequestId } from '../../src/idempotency/index';
import { deferred } from '../support/deferred';
import { useScriptedClients } from '../support/scripted-client';
import { fail, metadataOf, PATHS, succeed } from '../support/scripted-server';

const used = useScriptedClients();
const same = (bytes: Buffer): Buffer => bytes;

it('a call that waits for its next attempt ends with the call it serves, and leaves no listener', async () => {
  const waits = deferred<undefined>();
  const pushback = metadataOf({ 'grpc-retry-pushback-ms': '8000' });
  const { server, client } = await used.setUp([fail(status.UNAVAILABLE, 'down', pushback), succeed('late')], {
    onEvent: ({ type }) => void (type === 'retry' && waits.resolve(undefined)),
  });
  const ended = deferred<number | undefined>();
  let parent: ServerUnaryCall<Buffer, Buffer> | undefined;
  const outer = await used.serve((_, call) => {
    parent = call;
    const metadata = metadataOf({ 'request-id': newRequestId() });
    client.client.makeUnaryRequest(
      ...([PATHS.unknown, same, same, Buffer.from('x'), metadata] as const),
      { parent },
      (error) => ended.resolve(error?.code),
    );
  });
  const running = used.clientOf(outer.address).client.start(PATHS.safe, { metadata: new Metadata() });
  await waits.promise;
  const listenersWhileItWaits = parent?.listenerCount('cancelled') ?? NaN;
  running.cancel();
  expect(await ended.promise).toBe(status.CANCELLED);
  expect(server.arrivals).toHaveLength(1);
  expect(parent?.listenerCount('cancelled')).toBe(listenersWhileItWaits - 1);
}, 6_000);
