import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type Metadata, status } from '@grpc/grpc-js';
import type { ClientOptions } from '../../src/idempotency/client/client-options';
import { readCallFailure } from '../../src/idempotency/client/idempotency-error';
import { createRetryBudget } from '../../src/idempotency/client/retry-budget';
import { newRequestId } from '../../src/idempotency/request-id';
import { useScriptedClients } from '../support/scripted-client';
import {
  hang,
  metadataOf,
  PATHS,
  type RawClient,
  type ScriptedServer,
  startScriptedServer,
  succeed,
} from '../support/scripted-server';

const keyed = (): Metadata => metadataOf({ 'request-id': newRequestId() });

const { clientOf: clientAt, serve: serveAt } = useScriptedClients();

const clientOf = (port: number, options?: Partial<ClientOptions>): RawClient =>
  clientAt(`127.0.0.1:${port}`, options).client;

const serve = (port: number): Promise<ScriptedServer> => serveAt({ port }, succeed('done'));

async function freePort(): Promise<number> {
  const server = await startScriptedServer(succeed(''));
  server.close();
  return server.port;
}

test('a call waits for a connection, and that uses up neither attempts nor budget', async () => {
  const port = await freePort();
  const retryBudget = createRetryBudget({ maxTokens: 1 });
  const client = clientOf(port, { attemptTimeoutMs: 300, maxAttempts: 2, retryBudget });
  const call = client.call(PATHS.unknown, { metadata: keyed() });
  await delay(1_000);
  await serve(port);
  // The attempt that leaves at last may have had too little of its time left: then one more follows.
  const { status: end } = await call;
  expect(end.code).toBe(status.OK);
});

test('a keyless call waits too: it is sent once, when there is a server', async () => {
  const port = await freePort();
  const call = clientOf(port, { attemptTimeoutMs: 100 }).call(PATHS.unknown);
  await delay(300);
  const server = await serve(port);
  expect((await call).error).toBeNull();
  expect(server.arrivals).toHaveLength(1);
});

test.each<[string, Partial<ClientOptions>, Metadata]>([
  ['the client', { waitForReady: false }, keyed()],
  [
    'the call',
    {},
    (() => {
      const metadata = keyed();
      metadata.setOptions({ waitForReady: false });
      return metadata;
    })(),
  ],
])('where %s asks for no waiting, failures are told at once', async (_, options, metadata) => {
  const client = clientOf(await freePort(), { maxAttempts: 2, ...options });
  const startedAt = performance.now();
  const { error } = await client.call(PATHS.unknown, { metadata });
  expect(error?.code).toBe(status.UNAVAILABLE);
  expect(performance.now() - startedAt).toBeLessThan(2_000);
});

test('the options of the caller’s metadata are not written to', async () => {
  const client = clientOf(await freePort(), { timeoutMs: 100 });
  const metadata = keyed();
  await client.call(PATHS.unknown, { metadata });
  expect(metadata.getOptions()).toEqual({});
});

describe('a call that never got a connection', () => {
  test.each<[string, Metadata]>([
    ['with a key', keyed()],
    ['without one', metadataOf({})],
  ])('%s says where to and for how long it waited, and nothing else changes', async (_, metadata) => {
    const port = await freePort();
    const client = clientOf(port, { timeoutMs: 300, attemptTimeoutMs: 120 });
    const { error } = await client.call(PATHS.unknown, { metadata });
    expect(error?.code).toBe(status.DEADLINE_EXCEEDED);
    expect(error?.details).toMatch(/Deadline exceeded after .*Waiting for LB pick: no connection to /);
    expect(error?.details).toMatch(
      new RegExp(`: no connection to 127\\.0\\.0\\.1:${port} within 0\\.\\d s: does a server listen there\\?`),
    );
    expect(error && readCallFailure(error)).toMatchObject({ attempts: 1 });
  });

  test('says it of the target of a name too', async () => {
    const { client } = clientAt('nowhere.invalid:50051', { timeoutMs: 200 });
    const { error } = await client.call(PATHS.unknown, { metadata: keyed() });
    expect(error?.details).toMatch(/no connection to nowhere\.invalid:50051 within 0\.\d s/);
  });

  test('is none of which an attempt left', async () => {
    const server = await serveAt(hang);
    const { client } = clientAt(server.address, {
      ...{ timeoutMs: 600, attemptTimeoutMs: 200 },
      onEvent: ({ type }) => {
        if (type === 'retry') server.close();
      },
    });
    const { error } = await client.call(PATHS.unknown, { metadata: keyed() });
    expect(error && readCallFailure(error)).toMatchObject({ attempts: 2, why: 'deadline' });
    expect(error?.details).not.toContain('no connection');
  });
});

// Case J4.
test('a peer that never speaks ends a call in time, unknown; with a server in its place the key gets its answer', async () => {
  const sockets: Socket[] = [];
  const blackHole = createServer((socket) => sockets.push(socket.on('error', () => socket.destroy())));
  await new Promise<void>((resolve) => blackHole.listen(0, '127.0.0.1', resolve));
  const { port } = blackHole.address() as AddressInfo;
  const metadata = keyed();
  const startedAt = performance.now();
  const { error } = await clientOf(port, { timeoutMs: 400, attemptTimeoutMs: 150 }).call(PATHS.unknown, { metadata });
  expect(performance.now() - startedAt).toBeLessThan(1_500);
  const failure = error === null ? undefined : readCallFailure(error);
  expect(error?.code).toBe(status.DEADLINE_EXCEEDED);
  const requestId = metadata.get('request-id')[0];
  expect(failure).toMatchObject({ outcomeUnknown: true, why: 'deadline', requestId, retriable: true });
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => blackHole.close(resolve));
  const server = await serve(port);
  expect((await clientOf(port).call(PATHS.unknown, { metadata })).error).toBeNull();
  expect(server.arrivals).toHaveLength(1);
});
