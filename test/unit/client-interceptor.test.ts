import { type InterceptorOptions, Metadata, type NextCall, status, type StatusObject } from '@grpc/grpc-js';
import type { ClientOptions } from '../../src/idempotency/client/client-options';
import { createClientInterceptor } from '../../src/idempotency/client/interceptor';
import type { ClientEvent } from '../../src/idempotency/events';
import { newRequestId } from '../../src/idempotency/request-id';
import { metadataOf, PATHS } from '../support/scripted-server';

type Underlying = ReturnType<NextCall>;
type Listener = Parameters<Underlying['start']>[1];

/** One attempt, with the server played by the test. */
interface Attempt {
  readonly options: InterceptorOptions;
  readonly metadata: Metadata;
  readonly listener: Listener;
  readonly sent: unknown[];
  readonly cancelled: unknown[];
}

const ended = (code: status): StatusObject => ({ code, details: status[code], metadata: new Metadata() });
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

interface Streams {
  readonly requestStream?: boolean;
  readonly responseStream?: boolean;
}

function setUp({ requestStream = false, responseStream = false, ...timeouts }: Streams & Partial<ClientOptions> = {}) {
  const attempts: Attempt[] = [];
  const events: ClientEvent[] = [];
  const heard: [string, unknown][] = [];
  const nextCall = (options: InterceptorOptions): Underlying => {
    const sent: unknown[] = [];
    const cancelled: unknown[] = [];
    return {
      start: (metadata, listener) => attempts.push({ options, metadata, listener, sent, cancelled }),
      sendMessageWithContext: (_, message) => sent.push(message),
      sendMessage: (message) => sent.push(message),
      halfClose: () => sent.push('end'),
      startRead: () => undefined,
      cancelWithStatus: (...args) => cancelled.push(args),
      getPeer: () => 'peer',
      getAuthContext: () => ({ transportSecurityType: 'ssl' }),
    };
  };
  const interceptor = createClientInterceptor({
    policies: { get: () => undefined, all: () => [] },
    initialBackoffMs: 1,
    random: () => 0,
    onEvent: (event) => event.type !== 'retry_budget' && events.push(event),
    ...timeouts,
  });
  const options: InterceptorOptions = {
    method_definition: {
      path: PATHS.unregistered,
      requestStream,
      responseStream,
      requestSerialize: (bytes: Buffer) => bytes,
      responseDeserialize: (bytes: Buffer) => bytes,
    },
  };
  const call = interceptor(options, nextCall);
  const listener: Listener = {
    onReceiveMetadata: (metadata) => heard.push(['metadata', metadata]),
    onReceiveMessage: (message: unknown) => heard.push(['message', message]),
    onReceiveStatus: ({ code }) => heard.push(['status', code]),
  };
  const keyed = metadataOf({ 'request-id': newRequestId() });
  const send = async (): Promise<void> => {
    call.start(keyed, listener);
    call.sendMessage(Buffer.from('pay'));
    call.halfClose();
    await tick();
  };
  return { attempts, events, heard, call, listener, keyed, options, send };
}

test('the message of a failed attempt is never heard, and all of the good one is, once and in order', async () => {
  const { attempts, heard, send } = setUp();
  await send();
  attempts[0]?.listener?.onReceiveMetadata?.(metadataOf({ attempt: '1' }));
  attempts[0]?.listener?.onReceiveMessage?.('lost');
  attempts[0]?.listener?.onReceiveStatus?.(ended(status.UNAVAILABLE));
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(heard).toEqual([]);
  const initial = metadataOf({ attempt: '2' });
  attempts[1]?.listener?.onReceiveMetadata?.(initial);
  attempts[1]?.listener?.onReceiveMessage?.('kept');
  expect(heard).toEqual([]);
  attempts[1]?.listener?.onReceiveStatus?.(ended(status.OK));
  await tick();
  expect(heard).toEqual([
    ['metadata', initial],
    ['message', 'kept'],
    ['status', status.OK],
  ]);
});

test('a call that fails after its message hears no message', async () => {
  const { attempts, heard, send } = setUp();
  await send();
  attempts[0]?.listener?.onReceiveMessage?.('lost');
  attempts[0]?.listener?.onReceiveStatus?.(ended(status.NOT_FOUND));
  await tick();
  expect(heard).toEqual([
    ['message', null],
    ['status', status.NOT_FOUND],
  ]);
});

test('an attempt that reports its status twice counts once', async () => {
  const { attempts, heard, events, send } = setUp();
  await send();
  attempts[0]?.listener?.onReceiveStatus?.(ended(status.OK));
  attempts[0]?.listener?.onReceiveStatus?.(ended(status.OK));
  await tick();
  expect(heard.filter(([what]) => what === 'status')).toHaveLength(1);
  expect(events).toHaveLength(1);
});

test('nothing is sent before the request is whole', async () => {
  const { attempts, call, keyed, listener } = setUp();
  call.start(keyed, listener);
  call.sendMessage(Buffer.from('pay'));
  await tick();
  expect(attempts).toHaveLength(0);
  call.halfClose();
  await tick();
  expect(attempts[0]?.sent).toEqual([Buffer.from('pay'), 'end']);
});

test.each([
  ['in the same tick', false],
  ['later', true],
])('a call that is cancelled before it starts, %s, tells its caller once and sends nothing', async (_, isLater) => {
  const { attempts, heard, call, send } = setUp();
  call.cancelWithStatus(status.CANCELLED, 'Cancelled on client');
  if (isLater) await tick();
  await send();
  expect(attempts).toHaveLength(0);
  expect(heard).toEqual([
    ['message', null],
    ['status', status.CANCELLED],
  ]);
});

test('a cancel in the tick of the call is not told inside cancel()', async () => {
  const { heard, call, keyed, listener } = setUp();
  call.start(keyed, listener);
  call.cancelWithStatus(status.CANCELLED, 'Cancelled on client');
  expect(heard).toEqual([]);
  await tick();
  expect(heard.at(-1)).toEqual(['status', status.CANCELLED]);
});

test('a cancel after the end changes nothing', async () => {
  const { attempts, heard, events, call, send } = setUp();
  await send();
  attempts[0]?.listener?.onReceiveMessage?.('answer');
  attempts[0]?.listener?.onReceiveStatus?.(ended(status.OK));
  call.cancelWithStatus(status.CANCELLED, 'late');
  await tick();
  expect(heard.at(-1)).toEqual(['status', status.OK]);
  expect(events).toHaveLength(1);
});

test('a failure that meets a cancel on its way is not retried', async () => {
  const { attempts, heard, call, send } = setUp();
  await send();
  call.cancelWithStatus(status.CANCELLED, 'Cancelled on client');
  expect(attempts[0]?.cancelled).toEqual([[status.CANCELLED, 'Cancelled on client']]);
  attempts[0]?.listener?.onReceiveStatus?.(ended(status.UNAVAILABLE));
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(attempts).toHaveLength(1);
  expect(heard.at(-1)).toEqual(['status', status.UNAVAILABLE]);
});

test('a server that counts the deadline of the attempt and says it is over first is our own timeout', async () => {
  const { attempts, events, send } = setUp({ attemptTimeoutMs: 20 });
  await send();
  const early = { ...ended(status.DEADLINE_EXCEEDED), metadata: metadataOf({ 'content-type': 'application/grpc' }) };
  await new Promise((resolve) => setTimeout(resolve, 25));
  attempts[0]?.listener?.onReceiveStatus?.(early);
  expect(events).toEqual([{ type: 'retry', path: PATHS.unregistered, reason: 'DEADLINE_EXCEEDED', delayMs: 0 }]);
});

test('DEADLINE_EXCEEDED of a server that sent initial metadata, and so no headers with it, is its answer', async () => {
  const { attempts, events, send } = setUp();
  await send();
  attempts[0]?.listener?.onReceiveMetadata?.(new Metadata());
  attempts[0]?.listener?.onReceiveStatus?.({ ...ended(status.DEADLINE_EXCEEDED), details: 'the ledger was slow' });
  expect(events.map(({ type }) => type)).toEqual(['call']);
});

test('a deadline timer that fires early does not make time for another attempt', async () => {
  const { attempts, events, send } = setUp({ timeoutMs: 5_000 });
  await send();
  attempts[0]?.listener?.onReceiveStatus?.({
    ...ended(status.DEADLINE_EXCEEDED),
    details: 'Deadline exceeded after 5 s',
  });
  expect(events[0]).toEqual({ type: 'retry_refused', path: PATHS.unregistered, reason: 'deadline' });
});

test('the peer and its identity are those of the running attempt', async () => {
  const { attempts, call, send } = setUp();
  expect([call.getPeer(), call.getAuthContext()]).toEqual(['unknown', null]);
  await send();
  expect([call.getPeer(), call.getAuthContext()]).toEqual(['peer', { transportSecurityType: 'ssl' }]);
  attempts[0]?.listener?.onReceiveStatus?.(ended(status.OK));
  expect(call.getPeer()).toBe('unknown');
});

test.each([{ requestStream: true }, { responseStream: true }, { requestStream: true, responseStream: true }])(
  'a streaming method passes through untouched: %j',
  (streams) => {
    const { attempts, call, keyed, listener, options, events } = setUp(streams);
    call.start(keyed, listener);
    expect(attempts[0]?.options).toBe(options);
    expect(attempts[0]?.metadata).toBe(keyed);
    attempts[0]?.listener?.onReceiveStatus?.(ended(status.UNAVAILABLE));
    expect(attempts).toHaveLength(1);
    expect(events).toEqual([]);
  },
);

test('the options of the caller are not written to', async () => {
  const { attempts, options, send } = setUp();
  await send();
  expect(options.deadline).toBeUndefined();
  expect(attempts[0]?.options.deadline).toEqual(expect.any(Number));
});

test('an attempt that has all the time of its call gets a deadline of whole milliseconds', async () => {
  const { attempts, send } = setUp({ timeoutMs: 5_000 });
  await send();
  expect(Number.isInteger(attempts[0]?.options.deadline)).toBe(true);
});
