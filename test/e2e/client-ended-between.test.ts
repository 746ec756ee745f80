import { type InterceptorOptions, type Metadata, status } from '@grpc/grpc-js';
import type { ClientOptions } from '../../src/idempotency/client/client-options';
import { readCallFailure } from '../../src/idempotency/client/idempotency-error';
import { StatusError } from '../../src/idempotency/errors';
import { newRequestId } from '../../src/idempotency/request-id';
import { statusErrorStatus } from '../../src/idempotency/wire/error-details';
import { down, type ScriptedClient, useScriptedClients } from '../support/scripted-client';
import { fail, metadataOf, PATHS, rawClient, type RawCall, type ScriptedServer } from '../support/scripted-server';

const { atEnd, serve, setUp } = useScriptedClients({ initialBackoffMs: 200, random: () => 0.999 });

const RETRY_AFTER_MS = 200;
const { details, metadata } = statusErrorStatus(new StatusError(status.RESOURCE_EXHAUSTED, 'quota'), RETRY_AFTER_MS);
/** Refused clearly, and yet to be sent again. */
const quota = fail(status.RESOURCE_EXHAUSTED, details, metadata);

const keyed = (): Metadata => metadataOf({ 'request-id': newRequestId() });

/** A call whose first attempt has failed, and what it takes to end it before the second. */
interface Waiting {
  readonly client: ScriptedClient['client'];
  readonly call: RawCall;
}

/** Keeps the process busy, as a long computation would, until a moment is over in which the next attempt was due. */
const holdUp = (milliseconds: number): Partial<ClientOptions> => ({
  onEvent: ({ type }) => {
    const startedAt = performance.now();
    while (type === 'retry' && performance.now() - startedAt < milliseconds);
  },
});

const WAYS: readonly {
  readonly way: string;
  readonly why: string;
  readonly options?: Partial<ClientOptions>;
  readonly end?: (waiting: Waiting) => void;
}[] = [
  { way: 'a cancel', why: 'cancelled', end: ({ call }) => call.cancel() },
  { way: 'the end of its channel', why: 'channel', end: ({ client }) => client.client.close() },
  { way: 'its deadline', why: 'deadline', options: { timeoutMs: 600, ...holdUp(650) } },
  { way: 'the end of its key', why: 'key_expired', options: { keyLifetimeMs: 600, ...holdUp(650) } },
];

describe.each(WAYS)('a call that ends between two attempts by $way', ({ why, options, end }) => {
  const run = async (reply: typeof down) => {
    let announce = (): void => undefined;
    const retry = new Promise<void>((resolve) => (announce = resolve));
    const { server, client } = await setUp([reply], {
      ...options,
      onEvent: (event) => {
        options?.onEvent?.(event);
        if (event.type === 'retry') announce();
      },
    });
    const call = client.start(PATHS.unknown, { metadata: keyed() });
    await retry;
    end?.({ client, call });
    return { server, error: (await call.outcome).error };
  };

  it('after a clear refusal has done nothing', async () => {
    const { server, error } = await run(quota);
    expectEnd({ server, failure: failureOf(error), why, outcomeUnknown: false });
    expect(error?.details).not.toContain('unknown');
  });

  it('after an attempt that may have taken effect is unknown', async () => {
    const { server, error } = await run(down);
    expectEnd({ server, failure: failureOf(error), why, outcomeUnknown: true });
  });
});

describe('a call on behalf of another one, which is cancelled between two attempts', () => {
  it.each<[string, typeof down, boolean]>([
    ['after a clear refusal has done nothing', quota, false],
    ['after an attempt that may have taken effect is unknown', down, true],
  ])('%s', async (_, reply, outcomeUnknown) => {
    let announce = (): void => undefined;
    const retry = new Promise<void>((resolve) => (announce = resolve));
    const onEvent: ClientOptions['onEvent'] = ({ type }) => {
      if (type === 'retry') announce();
    };
    const { server, client } = await setUp([reply], { onEvent });
    let failed: Promise<ReturnType<typeof failureOf>> | undefined;
    const same = (bytes: Buffer): Buffer => bytes;
    const outer = await serve((_answer, parent: NonNullable<InterceptorOptions['parent']>) => {
      failed = new Promise((resolve) => {
        client.client.makeUnaryRequest(PATHS.unknown, same, same, Buffer.from(''), keyed(), { parent }, (error) =>
          resolve(failureOf(error)),
        );
      });
    });
    const caller = rawClient(outer.address, []);
    atEnd(() => caller.client.close());
    const call = caller.start(PATHS.safe);
    await retry;
    call.cancel();
    await outer.arrivals[0]?.cancelled;
    expectEnd({ server, failure: await failed, why: 'cancelled', outcomeUnknown });
  });
});

function failureOf(error: Parameters<typeof readCallFailure>[0] | null) {
  return error === null ? undefined : readCallFailure(error);
}

function expectEnd({
  server,
  failure,
  ...expected
}: {
  readonly server: ScriptedServer;
  readonly failure: ReturnType<typeof failureOf>;
  readonly why: string;
  readonly outcomeUnknown: boolean;
}): void {
  expect(failure).toMatchObject({ ...expected, attempts: 1 });
  expect(server.arrivals).toHaveLength(1);
}
