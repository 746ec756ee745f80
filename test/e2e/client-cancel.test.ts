import { join } from 'node:path';
import { Metadata, status } from '@grpc/grpc-js';
import type { ClientEvent } from '../../src/idempotency/events';
import { ROOT, runProgram } from '../support/run-program';
import { down, useScriptedClients } from '../support/scripted-client';
import { hang, PATHS, rawClient, type Reply, succeed } from '../support/scripted-server';

const { atEnd, serve, setUp: setUpClient } = useScriptedClients({ initialBackoffMs: 100, random: () => 0.9 });

async function setUp(script: readonly Reply[]) {
  let announce = (): void => undefined;
  const retry = new Promise<void>((resolve) => (announce = resolve));
  const onEvent = ({ type }: ClientEvent): void => {
    if (type === 'retry') announce();
  };
  return { ...(await setUpClient(script, { onEvent })), retry };
}

/** Longer than the wait that was cut short would have been. */
const pastTheBackoff = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 200));

test('a cancel while waiting for the next attempt ends the call, and nothing more is sent', async () => {
  const { server, client, retry, events } = await setUp([down, succeed('too late')]);
  const call = client.start(PATHS.safe);
  await retry;
  call.cancel();
  const { error } = await call.outcome;
  expect([error?.code, error?.details]).toEqual([status.CANCELLED, 'Cancelled on client']);
  await pastTheBackoff();
  expect(server.arrivals).toHaveLength(1);
  expect(events.at(-1)).toEqual({ type: 'call', path: PATHS.safe, attempts: 1, code: status.CANCELLED });
});

test('a cancel while an attempt runs ends the call, and nothing more is sent', async () => {
  const { server, client } = await setUp([hang, succeed('too late')]);
  const call = client.start(PATHS.safe);
  await server.arrived(1);
  call.cancel();
  expect((await call.outcome).error?.code).toBe(status.CANCELLED);
  await server.arrivals[0]?.cancelled;
  await pastTheBackoff();
  expect(server.arrivals).toHaveLength(1);
});

test('a cancel in the tick of the call sends nothing, also on a connection that is up', async () => {
  const { server, client } = await setUp([succeed('done')]);
  await client.call(PATHS.safe);
  const call = client.start(PATHS.safe);
  call.cancel();
  expect((await call.outcome).error?.code).toBe(status.CANCELLED);
  await client.call(PATHS.safe);
  expect(server.arrivals).toHaveLength(2);
});

test('the callback of a cancelled call does not run inside cancel()', async () => {
  const { client, retry } = await setUp([down]);
  const call = client.start(PATHS.safe);
  let isOver = false;
  void call.outcome.then(() => (isOver = true));
  await retry;
  call.cancel();
  await Promise.resolve();
  expect(isOver).toBe(false);
  await call.outcome;
});

test('a channel that is closed while waiting ends the call with the last real error', async () => {
  const { server, client, retry } = await setUp([down]);
  const call = client.start(PATHS.safe);
  await retry;
  client.client.close();
  const { error } = await call.outcome;
  expect(error?.code).toBe(status.UNAVAILABLE);
  expect(error?.details).toMatch(/^down \(gave up after 1 attempt: the channel takes no more calls/);
  expect(server.arrivals).toHaveLength(1);
});

test('a call on a closed channel fails without an attempt', async () => {
  const { client, events } = await setUp([succeed('done')]);
  client.client.close();
  const { error } = await client.call(PATHS.safe);
  expect(error?.details).toBe('The attempt could not be started: Channel has been shut down');
  expect(events).toEqual([{ type: 'call', path: PATHS.safe, attempts: 0, code: status.INTERNAL }]);
});

test('a call made on behalf of another one sends nothing after that one was cancelled', async () => {
  const { server, client, retry } = await setUp([down, succeed('too late')]);
  let inner: Promise<string | undefined> = Promise.resolve('');
  const outer = await serve((_, call) => {
    const same = (bytes: Buffer): Buffer => bytes;
    inner = new Promise((resolve) => {
      const done = (error: { details: string } | null): void => resolve(error?.details);
      client.client.makeUnaryRequest(
        PATHS.safe,
        same,
        same,
        Buffer.from('inner'),
        new Metadata(),
        { parent: call },
        done,
      );
    });
  });
  const caller = rawClient(outer.address, []);
  atEnd(() => caller.client.close());
  const call = caller.start(PATHS.safe);
  await retry;
  call.cancel();
  await outer.arrivals[0]?.cancelled;
  expect(await inner).toBe('Cancelled by parent call');
  expect(server.arrivals).toHaveLength(1);
});

test('a process that cancels while waiting for the next attempt has no timer left and ends', async () => {
  const server = await serve(down);
  const program = runProgram(['--import', 'tsx', join(ROOT, 'test/support/cancel-in-backoff.ts'), server.address]);
  await program.printed(/"why":"cancelled"/);
  const toldAt = performance.now();
  expect(await program.exited).toBe(0);
  expect(performance.now() - toldAt).toBeLessThan(5_000);
  const told = { code: status.CANCELLED, why: 'cancelled', attempts: 1, outcomeUnknown: true };
  expect(JSON.parse(program.output())).toEqual(told);
  expect(server.arrivals).toHaveLength(1);
});
