import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Metadata, type ServerUnaryCall, status } from '@grpc/grpc-js';
import type { ClientOptions } from '../../src/idempotency/client/client-options';
import { newRequestId } from '../../src/idempotency/request-id';
import { down, useScriptedClients } from '../support/scripted-client';
import { fail, hang, metadataOf, PATHS, type Reply, succeed } from '../support/scripted-server';

const { atEnd, clientOf, setUp: setUpClient } = useScriptedClients();

async function setUp(script: readonly Reply[], options: Partial<ClientOptions> = {}) {
  const { server, client } = await setUpClient(script, options);
  // The time of a test is that of its calls, not of the connection.
  await new Promise<void>((resolve, reject) => {
    client.client.waitForReady(Date.now() + 10_000, (error) => (error ? reject(error) : resolve()));
  });
  return { server, client };
}

async function timed<T>(run: () => Promise<T>): Promise<[T, number]> {
  const start = performance.now();
  const result = await run();
  return [result, performance.now() - start];
}

// Case J5.
test('an attempt that hangs is given up after its timeout and the next one succeeds', async () => {
  const options = { attemptTimeoutMs: 150, timeoutMs: 5_000 };
  const { server, client } = await setUp([hang, succeed('done')], options);
  const outcome = await client.call(PATHS.unknown, { metadata: metadataOf({ 'request-id': newRequestId() }) });
  expect(outcome).toMatchObject({ error: null, text: 'done' });
  expect(server.arrivals).toHaveLength(2);
  await server.arrivals[0]?.cancelled;
});

test('an always-hanging server ends at the overall deadline, after as many attempts as fit', async () => {
  const options = { attemptTimeoutMs: 150, timeoutMs: 500 };
  const { server, client } = await setUp([hang], options);
  const [{ error }, durationMs] = await timed(() => client.call(PATHS.safe));
  expect(error?.code).toBe(status.DEADLINE_EXCEEDED);
  expect(error?.details).toMatch(/^Deadline exceeded.*\(gave up after \d attempts: no time left before the deadline/);
  expect(durationMs).toBeGreaterThan(440);
  expect(durationMs).toBeLessThan(1_000);
  expect(server.arrivals.length).toBeGreaterThanOrEqual(3);
  expect(server.arrivals.length).toBeLessThanOrEqual(4);
});

test('an always-hanging server ends at an overall deadline of 2 s, with attempts of 300 ms', async () => {
  const { server, client } = await setUp([hang], { attemptTimeoutMs: 300, timeoutMs: 2_000, maxAttempts: 10 });
  const metadata = metadataOf({ 'request-id': newRequestId() });
  const [{ error }, durationMs] = await timed(() => client.call(PATHS.unknown, { metadata }));
  expect(error?.code).toBe(status.DEADLINE_EXCEEDED);
  expect(durationMs).toBeGreaterThan(1_900);
  expect(durationMs).toBeLessThan(2_400);
  expect(server.arrivals.length).toBeGreaterThanOrEqual(6);
  expect(server.arrivals.length).toBeLessThanOrEqual(7);
  const keys = server.arrivals.map((arrival) => arrival.metadata.get('request-id').join());
  expect(new Set(keys).size).toBe(1);
});

test('an always-failing server ends before the overall deadline when no wait fits any more', async () => {
  const options = {
    maxAttempts: 1_000,
    timeoutMs: 300,
    initialBackoffMs: 40,
    backoffMultiplier: 1,
    random: () => 0.999,
  };
  const { server, client } = await setUp([down], options);
  const [{ error }, durationMs] = await timed(() => client.call(PATHS.safe));
  expect(error?.code).toBe(status.UNAVAILABLE);
  expect(error?.details).toMatch(/^down \(gave up after \d+ attempts: no time left/);
  expect(durationMs).toBeLessThan(600);
  expect(server.arrivals.length).toBeLessThanOrEqual(8);
});

test('a hint to wait beyond the deadline ends the call at once', async () => {
  const later = fail(status.UNAVAILABLE, 'down', metadataOf({ 'grpc-retry-pushback-ms': '60000' }));
  const { client } = await setUp([later], { timeoutMs: 10_000 });
  const [{ error }, durationMs] = await timed(() => client.call(PATHS.safe));
  expect(error?.details).toMatch(/^down \(gave up after 1 attempt: no time left/);
  expect(durationMs).toBeLessThan(2_000);
});

test('the last real error is kept when time runs out in a later attempt', async () => {
  const { server, client } = await setUp([down, hang], { timeoutMs: 500 });
  const { error } = await client.call(PATHS.safe);
  expect(server.arrivals).toHaveLength(2);
  expect(error?.code).toBe(status.UNAVAILABLE);
  expect(error?.details).toMatch(/^down \(gave up after 2 attempts: no time left/);
});

// Case J4.
test('a peer that accepts connections and never speaks ends at the overall deadline', async () => {
  const sockets: Socket[] = [];
  const blackHole = createServer((socket) => sockets.push(socket.on('error', () => socket.destroy())));
  await new Promise<void>((resolve) => blackHole.listen(0, '127.0.0.1', resolve));
  atEnd(
    () => blackHole.close(),
    () => sockets.forEach((socket) => socket.destroy()),
  );
  const { port } = blackHole.address() as AddressInfo;
  const { client } = clientOf(`127.0.0.1:${port}`, { timeoutMs: 400, attemptTimeoutMs: 200 });
  const [{ error }, durationMs] = await timed(() => client.call(PATHS.safe));
  expect(error?.code).toBe(status.DEADLINE_EXCEEDED);
  expect(durationMs).toBeLessThan(1_000);
});

test('a keyless call of an unknown level has the whole time for its only attempt', async () => {
  const { server, client } = await setUp([hang], { attemptTimeoutMs: 50, timeoutMs: 300 });
  const [{ error }, durationMs] = await timed(() => client.call(PATHS.unknown));
  expect(durationMs).toBeGreaterThan(250);
  expect(error?.code).toBe(status.DEADLINE_EXCEEDED);
  expect(error?.details).toMatch(/^retry refused: no request-id\. .*Deadline exceeded/);
  expect(server.arrivals).toHaveLength(1);
});

test("a call's own deadline counts where it is sooner, and only there", async () => {
  const sooner = await setUp([hang], { timeoutMs: 5_000 });
  const [first, firstMs] = await timed(() => sooner.client.call(PATHS.safe, { deadline: Date.now() + 200 }));
  expect([first.error?.code, firstMs < 1_000]).toEqual([status.DEADLINE_EXCEEDED, true]);
  const later = await setUp([hang], { timeoutMs: 200 });
  const [second, secondMs] = await timed(() => later.client.call(PATHS.safe, { deadline: Date.now() + 5_000 }));
  expect([second.error?.code, secondMs < 1_000]).toEqual([status.DEADLINE_EXCEEDED, true]);
});

test('a call whose deadline has passed never reaches the server', async () => {
  const { server, client } = await setUp([succeed('done')], {});
  expect((await client.call(PATHS.safe)).error).toBeNull();
  const { error } = await client.call(PATHS.safe, { deadline: Date.now() - 1 });
  expect([error?.code, error?.details]).toEqual([status.DEADLINE_EXCEEDED, 'Deadline exceeded']);
  expect(server.arrivals).toHaveLength(1);
});

test('a process that was held up past the deadline sends nothing more', async () => {
  const { server, client } = await setUp([down, succeed('too late')], {
    timeoutMs: 500,
    onEvent: ({ type }) => {
      const start = performance.now();
      while (type === 'retry' && performance.now() - start < 550);
    },
  });
  const { error } = await client.call(PATHS.safe);
  expect(error?.details).toMatch(/^down \(gave up after 1 attempt: no time left/);
  expect(server.arrivals).toHaveLength(1);
});

test('DEADLINE_EXCEEDED that a server says for itself is an answer', async () => {
  const { server, client } = await setUp([fail(status.DEADLINE_EXCEEDED, 'the ledger was slow')], {});
  const { error } = await client.call(PATHS.safe);
  expect([error?.details, server.arrivals.length]).toEqual(['the ledger was slow', 1]);
});

test('the server sees the time of the attempt as its deadline', async () => {
  const deadlines: unknown[] = [];
  const record: Reply = (answer, call: ServerUnaryCall<Buffer, Buffer>) => {
    deadlines.push(call.getDeadline());
    answer(null, Buffer.from('done'));
  };
  const { client } = await setUp([record], { attemptTimeoutMs: 2_000 });
  await client.call(PATHS.safe, { metadata: new Metadata() });
  const leftMs = Number(deadlines[0]) - Date.now();
  expect(leftMs).toBeGreaterThan(500);
  expect(leftMs).toBeLessThanOrEqual(2_000);
});
