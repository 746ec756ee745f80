import { InterceptingCall, type Interceptor, Metadata, status } from '@grpc/grpc-js';
import { CHANNEL_OPTIONS } from '../../src/idempotency/client/channel-options';
import { readCallFailure } from '../../src/idempotency/client/idempotency-error';
import { createClientInterceptor } from '../../src/idempotency/client/interceptor';
import type { ClientEvent } from '../../src/idempotency/events';
import { newRequestId } from '../../src/idempotency/index';
import { policies, useScriptedClients } from '../support/scripted-client';
import { hang, metadataOf, PATHS, rawClient, succeed } from '../support/scripted-server';

const used = useScriptedClients();
type Requester = NonNullable<ConstructorParameters<typeof InterceptingCall>[1]>;

async function callThrough(requester: Requester, server: { readonly address: string }) {
  const events: ClientEvent[] = [];
  const below: Interceptor = (options, nextCall) => new InterceptingCall(nextCall(options), requester);
  const retries = createClientInterceptor({
    ...{
      policies,
      initialBackoffMs: 1,
      attemptTimeoutMs: 100,
      onEvent: (event: ClientEvent) => void events.push(event),
    },
  });
  const raw = rawClient(server.address, [retries, below], { ...CHANNEL_OPTIONS });
  used.atEnd(() => raw.client.close());
  const metadata = metadataOf({ 'request-id': newRequestId() });
  const ended = await raw.call(PATHS.unknown, { metadata, deadline: Date.now() + 2_000 });
  return { ...ended, ends: () => events.filter(({ type }) => type === 'call').length, events };
}

describe('an interceptor below the retries that throws', () => {
  it('once the attempt is on its way ends the call once: that attempt is abandoned', async () => {
    const server = await used.serve(hang);
    const { error, ends, events } = await callThrough(
      {
        start: (metadata, listener, next) => {
          next(metadata, listener);
          throw new Error('too late');
        },
      },
      server,
    );
    expect(error?.details).toContain('too late');
    // Longer than the time of the attempt.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(ends()).toBe(1);
    expect(events.filter(({ type }) => type === 'retry')).toEqual([]);
  });

  it('with its message leaves open what became of the call', async () => {
    const server = await used.serve(hang);
    const { error } = await callThrough(
      {
        sendMessage: (message: unknown, next: (message: unknown) => void) => {
          next(message);
          throw new Error('broken');
        },
      },
      server,
    );
    expect(error && readCallFailure(error)).toMatchObject({ attempts: 1, why: 'channel', outcomeUnknown: true });
  });

  it('after it has answered does not end what follows', async () => {
    const server = await used.serve(succeed('second'));
    let attempts = 0;
    const { error, ends } = await callThrough(
      {
        start: (metadata, listener, next) => {
          attempts += 1;
          if (attempts > 1) return next(metadata, listener);
          listener.onReceiveStatus({ code: status.UNAVAILABLE, details: 'away', metadata: new Metadata() });
          throw new Error('after its answer');
        },
      },
      server,
    );
    expect(error).toBeNull();
    expect([attempts, ends()]).toEqual([2, 1]);
  });
});
