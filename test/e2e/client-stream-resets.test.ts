import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { readCallFailure } from '../../src/idempotency/client/idempotency-error';
import { newRequestId } from '../../src/idempotency/index';
import { useScriptedClients } from '../support/scripted-client';
import { metadataOf, PATHS } from '../support/scripted-server';

const used = useScriptedClients();

/** Starts a server that resets each stream once it has the whole request. */
async function startResetting(code: number): Promise<string> {
  const server = createServer();
  server.on('stream', (stream) => {
    stream.on('error', () => undefined);
    stream.resume();
    stream.on('end', () => stream.close(code));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  used.atEnd(() => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

// 12 is INADEQUATE_SECURITY, of which grpc-js makes PERMISSION_DENIED.
it.each([0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13])(
  'a stream that is reset with %i after its request leaves the outcome unknown',
  async (code) => {
    const { client } = used.clientOf(await startResetting(code), { maxAttempts: 2, initialBackoffMs: 1 });
    const metadata = metadataOf({ 'request-id': newRequestId() });
    const { error } = await client.call(PATHS.unknown, { metadata, deadline: Date.now() + 1_500 });
    expect(error && readCallFailure(error)).toMatchObject({ outcomeUnknown: true });
  },
);
