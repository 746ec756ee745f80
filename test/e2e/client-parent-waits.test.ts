import { Metadata, type ServerUnaryCall, status } from '@grpc/grpc-js';
import { newRequestId } from '../../src/idempotency/index';
import { deferred } from '../support/deferred';
import { useScriptedClients } from '../support/scripted-client';
import { fail, metadataOf, PATHS, succeed } from '../support/scripted-server';

const used = useScriptedClients();
const same = (bytes: Buffer): Buffer => bytes;

it('a wait that is over leaves no listener on the call it serves', async () => {
  const counts: number[] = [];
  let parent: ServerUnaryCall<Buffer, Buffer> | undefined;
  const { client } = await used.setUp(
    [fail(status.UNAVAILABLE, 'down'), fail(status.UNAVAILABLE, 'down'), succeed('ok')],
    {
      onEvent: ({ type }) => void (type === 'retry' && counts.push(parent?.listenerCount('cancelled') ?? NaN)),
    },
  );
  const ended = deferred<number | undefined>();
  const outer = await used.serve((answer, call) => {
    parent = call;
    const metadata = metadataOf({ 'request-id': newRequestId() });
    client.client.makeUnaryRequest(
      ...([PATHS.unknown, same, same, Buffer.from('x'), metadata] as const),
      { parent },
      (error) => {
        counts.push(call.listenerCount('cancelled'));
        ended.resolve(error?.code);
        answer(null, Buffer.from('done'));
      },
    );
  });
  used.clientOf(outer.address).client.start(PATHS.safe, { metadata: new Metadata() });
  expect(await ended.promise).toBeUndefined();
  // grpc-js itself leaves one for each attempt; while a call waits there is one more.
  const [waitsFirst = NaN, waitsSecond, atEnd] = counts;
  expect([waitsSecond, atEnd]).toEqual([waitsFirst + 1, waitsFirst + 1]);
});
