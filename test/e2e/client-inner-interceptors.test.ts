import { InterceptingCall, type Interceptor, Metadata, type ServerUnaryCall, status } from '@grpc/grpc-js';
import { CHANNEL_OPTIONS } from '../../src/idempotency/client/channel-options';
import { readCallFailure } from '../../src/idempotency/client/idempotency-error';
import { createClientInterceptor } from '../../src/idempotency/client/interceptor';
import { newRequestId } from '../../src/idempotency/index';
import { down, policies, useScriptedClients } from '../support/scripted-client';
import { metadataOf, PATHS, rawClient, succeed } from '../support/scripted-server';

const used = useScriptedClients();

/** Sets a token with a line break at the nth attempt: grpc-js throws. */
function withBadToken(nth: number): Interceptor {
  let attempts = 0;
  return (options, nextCall) =>
    new InterceptingCall(nextCall(options), {
      start: (metadata, listener, next) => {
        attempts += 1;
        if (attempts === nth) metadata.set('authorization', 'Bearer a\nb');
        next(metadata, listener);
      },
    });
}

describe('an interceptor below the retries that throws', () => {
  it.each([
    [1, { attempts: 0, outcomeUnknown: false }, status.INTERNAL, 0],
    // The first attempt failed otherwise; that is the last real error.
    [2, { attempts: 1, outcomeUnknown: true }, status.UNAVAILABLE, 1],
  ])('at attempt %i ends the call, and not the process', async (nth, failure, code, arrivals) => {
    const server = await used.serve(down, succeed('ok'));
    const retries = createClientInterceptor({ policies, initialBackoffMs: 1 });
    const raw = rawClient(server.address, [retries, withBadToken(nth)], { ...CHANNEL_OPTIONS });
    used.atEnd(() => raw.client.close());
    const metadata = metadataOf({ 'request-id': newRequestId() });
    const { error } = await raw.call(PATHS.unknown, { metadata, deadline: Date.now() + 2_000 });
    expect(error?.code).toBe(code);
    expect(error?.details).toMatch(/The attempt could not be sent: .*illegal characters/s);
    expect(error && readCallFailure(error)).toMatchObject(failure);
    expect(server.arrivals).toHaveLength(arrivals);
  });
});

it('OK without a message is a failure that knows its attempts', async () => {
  const server = await used.serve((_, call) => {
    const { call: stream } = call as ServerUnaryCall<unknown, unknown> & {
      readonly call: { sendStatus(ended: object): void };
    };
    stream.sendStatus({ code: status.OK, details: '', metadata: new Metadata() });
  });
  const { client } = used.clientOf(server.address);
  const metadata = metadataOf({ 'request-id': newRequestId() });
  const { error } = await client.call(PATHS.unknown, { metadata, deadline: Date.now() + 1_500 });
  expect(error?.code).toBe(status.INTERNAL);
  expect(error && readCallFailure(error)).toMatchObject({ attempts: 1, outcomeUnknown: true });
});
