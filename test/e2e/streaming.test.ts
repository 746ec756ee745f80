import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import {
  Client,
  credentials,
  type handleBidiStreamingCall,
  type handleClientStreamingCall,
  type handleServerStreamingCall,
  Metadata,
  type MethodDefinition,
  status,
} from '@grpc/grpc-js';
import { createIdempotency, loadPolicies } from '../../src/idempotency/index';
import { policyFaults } from '../support/policy-faults';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { descriptorSetOf, packageDefinitionOf } from '../support/proto-forms';
import { serve, type Served } from '../support/served';
import { until } from '../support/until';

const MARKED = 'option (idempotency.v1.policy) = {unprotected_stream: true};';
const SAFE = 'option idempotency_level = NO_SIDE_EFFECTS;';

/** The four kinds of methods, with the options of each stream. */
const sources = (options: { readonly upload: string; readonly watch: string; readonly chat: string }) => ({
  't/v1/ledger.proto': `
    syntax = "proto3";
    package t.v1;
    import "idempotency/v1/policy.proto";
    message Entry { string text = 1; }
    service Ledger {
      rpc Add(Entry) returns (Entry) { option (idempotency.v1.policy) = {lease: {seconds: 5}}; }
      rpc Upload(stream Entry) returns (Entry) { ${options.upload} }
      rpc Watch(Entry) returns (stream Entry) { ${options.watch} }
      rpc Chat(stream Entry) returns (stream Entry) { ${options.chat} }
    }`,
});

interface Entry {
  readonly text: string;
}

type Method<RequestStream, ResponseStream> = MethodDefinition<Entry, Entry> & {
  readonly requestStream: RequestStream;
  readonly responseStream: ResponseStream;
};

/** As a generator of code would declare the service. */
type LedgerService = {
  readonly Add: Method<false, false>;
  readonly Upload: Method<true, false>;
  readonly Watch: Method<false, true>;
  readonly Chat: Method<true, true>;
};

const served = sources({ upload: MARKED, watch: SAFE, chat: MARKED });
const Ledger = packageDefinitionOf(served)['t.v1.Ledger'] as unknown as LedgerService;

/** What reached the handlers, in their order. */
const arrived: string[] = [];
let hungUp = 0;

const upload: handleClientStreamingCall<Entry, Entry> = (call, callback) => {
  const texts: string[] = [];
  call.on('data', ({ text }: Entry) => {
    arrived.push(text);
    texts.push(text);
  });
  call.on('cancelled', () => hungUp++);
  call.on('end', () => callback(null, { text: texts.join('+') }));
};
const watch: handleServerStreamingCall<Entry, Entry> = (call) => {
  for (const suffix of ['1', '2']) call.write({ text: `${call.request.text}${suffix}` });
  call.end();
};
const chat: handleBidiStreamingCall<Entry, Entry> = (call) => {
  call.on('data', ({ text }: Entry) => call.write({ text: text.toUpperCase() }));
  call.on('end', () => call.end());
};

// Case J10: a stream is never recognised by its first message.
describe('a service with methods of all kinds', () => {
  let database: TestDatabase;
  let server: Served;
  let client: Client;
  let added = 0;

  beforeAll(async () => {
    database = await createTestDatabase();
    server = await serve({
      connectionString: database.connectionString,
      descriptorSet: descriptorSetOf(served),
      add: (idempotency, grpc) =>
        idempotency.addService(grpc, Ledger, {
          Add: (request, attempt) => attempt.complete(async () => ({ text: `${request.text}#${++added}` })),
          Upload: upload,
          Watch: watch,
          Chat: chat,
        }),
    });
    client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
  });
  afterAll(async () => {
    client.close();
    await server.stop();
    await database.drop();
  });
  beforeEach(() => arrived.splice(0));

  const keyed = (requestId: string): Metadata => {
    const metadata = new Metadata();
    metadata.set('request-id', requestId);
    return metadata;
  };
  const method = (name: keyof LedgerService) => {
    const { path, requestSerialize, responseDeserialize } = Ledger[name];
    return [path, requestSerialize, responseDeserialize] as const;
  };
  const uploadOf = (requestId: string, texts: readonly string[]): Promise<string> =>
    new Promise((resolve, reject) => {
      const call = client.makeClientStreamRequest(...method('Upload'), keyed(requestId), (error, entry) =>
        error === null ? resolve(entry?.text ?? '') : reject(error),
      );
      for (const text of texts) call.write({ text });
      call.end();
    });
  const textsOf = async (call: Readable): Promise<readonly string[]> => {
    const texts: string[] = [];
    call.on('data', ({ text }: Entry) => texts.push(text));
    await once(call, 'end');
    return texts;
  };
  const add = (requestId: string, text: string): Promise<string> =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(...method('Add'), { text }, keyed(requestId), (error, entry) =>
        error === null ? resolve(entry?.text ?? '') : reject(error),
      );
    });
  const records = () => database.count('idempotency_record');

  it('protects the unary one', async () => {
    const requestId = randomUUID();
    expect([await add(requestId, 'a'), await add(requestId, 'a')]).toEqual(['a#1', 'a#1']);
    await expect(add(requestId, 'b')).rejects.toMatchObject({ code: status.FAILED_PRECONDITION });
    expect(await records()).toBe(1);
  });

  it('runs every stream of a client, whatever its key, and records none', async () => {
    const before = await records();
    const requestId = randomUUID();
    expect(await uploadOf(requestId, ['a', 'b'])).toBe('a+b');
    expect(await uploadOf(requestId, ['a', 'c'])).toBe('a+c');
    expect(arrived).toEqual(['a', 'b', 'a', 'c']);
    expect(await records()).toBe(before);
  });

  it('leaves no claim behind a stream that is cancelled after its first message', async () => {
    const before = await records();
    const call = client.makeClientStreamRequest(...method('Upload'), keyed(randomUUID()), () => undefined);
    call.write({ text: 'first' });
    await until('the first message has arrived', async () => arrived.length === 1);
    call.cancel();
    await until('the handler has seen the end', async () => hungUp > 0);
    expect(await records()).toBe(before);
  });

  it('lets safe streams of a server and streams of both sides through', async () => {
    const watching = client.makeServerStreamRequest(...method('Watch'), { text: 'x' }, keyed(randomUUID()));
    expect(await textsOf(watching)).toEqual(['x1', 'x2']);
    const chatting = client.makeBidiStreamRequest(...method('Chat'), keyed(randomUUID()));
    for (const text of ['a', 'b']) chatting.write({ text });
    chatting.end();
    expect(await textsOf(chatting)).toEqual(['A', 'B']);
  });
});

describe('a service whose streams are neither safe nor marked', () => {
  const unmarked = sources({ upload: SAFE, watch: 'option idempotency_level = IDEMPOTENT;', chat: '' });

  it('is not registered, and each of its methods that cannot be served is named', () => {
    const idempotency = createIdempotency({
      policies: loadPolicies(descriptorSetOf(unmarked)),
      store: { claim: () => Promise.reject(new Error('not called')) } as never,
      principal: () => 'account-1',
    });
    const registered: unknown[] = [];
    const server = { addService: (...service: unknown[]) => registered.push(service) } as never;
    const Forgotten = { ...Ledger.Add, path: '/t.v1.Ledger/Forgotten' };
    const definition = { ...Ledger, Forgotten, Missing: { ...Ledger.Add, path: '/t.v2.Ledger/Missing' } };
    const handle = () => Promise.reject(new Error('not called'));
    const handlers = { Add: handle, Upload: upload, Watch: watch, Chat: chat, Forgotten: handle, Missing: handle };
    const stream = 'expected unprotected_stream: true in its (idempotency.v1.policy), since a stream is not protected';
    const entry = 'expected in the descriptor set that the policies come from';
    expect(policyFaults(() => idempotency.addService(server, definition, handlers))).toEqual([
      `/t.v1.Ledger/Upload: ${stream}`,
      `/t.v1.Ledger/Watch: ${stream}`,
      `/t.v1.Ledger/Chat: ${stream}`,
      `/t.v1.Ledger/Forgotten: ${entry}`,
      `/t.v2.Ledger/Missing: ${entry}`,
    ]);
    expect(registered).toEqual([]);
  });
});
