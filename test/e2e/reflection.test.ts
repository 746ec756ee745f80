import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { type FileDescriptorProto, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { type ClientDuplexStream, credentials, makeClientConstructor, status } from '@grpc/grpc-js';
import { loadSync, type ServiceDefinition } from '@grpc/proto-loader';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { startTestService, type TestService } from '../support/service';
import { useService } from '../support/use-service';

const PROTOS = join(dirname(createRequire(__filename).resolve('@grpc/reflection/package.json')), 'build', 'proto');

/** What a client may ask. */
interface Question {
  readonly listServices?: string;
  readonly fileContainingSymbol?: string;
  readonly fileByFilename?: string;
}

/** What comes back; the one that fits is set. */
interface Told {
  readonly listServicesResponse?: { readonly service: readonly { readonly name: string }[] };
  readonly fileDescriptorResponse?: { readonly fileDescriptorProto: readonly Buffer[] };
  readonly errorResponse?: { readonly errorCode: number; readonly errorMessage: string };
}

interface ReflectionClient {
  readonly stream: ClientDuplexStream<Question, Told>;
  ask(question: Question): Promise<Told>;
  close(): void;
}

/** A client as grpcurl is one: it knows the proto of reflection and nothing else. */
function reflectionClient(port: number, version: 'v1' | 'v1alpha'): ReflectionClient {
  const loaded = loadSync(`grpc/reflection/${version}/reflection.proto`, { includeDirs: [PROTOS], oneofs: true });
  const definition = loaded[`grpc.reflection.${version}.ServerReflection`] as ServiceDefinition;
  const constructor = makeClientConstructor(definition, 'ServerReflection');
  const client = new constructor(`127.0.0.1:${port}`, credentials.createInsecure());
  const method = definition['ServerReflectionInfo'];
  if (method === undefined) throw new Error('no ServerReflectionInfo');
  const stream = client.makeBidiStreamRequest<Question, Told>(
    method.path,
    method.requestSerialize,
    method.responseDeserialize as (bytes: Buffer) => Told,
  );
  return {
    stream,
    ask: async (question) => {
      const answered = once(stream, 'data') as Promise<[Told]>;
      stream.write(question);
      return (await answered)[0];
    },
    close: () => client.close(),
  };
}

function files(told: Told): readonly FileDescriptorProto[] {
  const bytes = told.fileDescriptorResponse?.fileDescriptorProto ?? [];
  return bytes.map((file) => fromBinary(FileDescriptorProtoSchema, file));
}

describe('a client without proto files', () => {
  const inUse = useService();

  it.each(['v1', 'v1alpha'] as const)('learns the services and their types, by %s', async (version) => {
    const client = reflectionClient(inUse.service.grpcPort, version);
    const { listServicesResponse } = await client.ask({ listServices: '*' });
    const names = listServicesResponse?.service.map(({ name }) => name) ?? [];
    expect(names).toEqual(expect.arrayContaining(['payments.v1.PaymentsService', 'grpc.health.v1.Health']));

    const [payments] = files(await client.ask({ fileContainingSymbol: 'payments.v1.PaymentsService' }));
    expect(payments?.name).toBe('payments/v1/payments.proto');
    expect(payments?.service[0]?.method.map(({ name }) => name)).toContain('CreatePayment');
    const request = payments?.messageType.find(({ name }) => name === 'CreatePaymentRequest');
    expect(request?.field.map(({ name, number }) => [name, number])).toContainEqual(['amount_minor', 2]);

    const [health] = files(await client.ask({ fileContainingSymbol: 'grpc.health.v1.Health' }));
    expect(health?.service[0]?.method.map(({ name }) => name)).toEqual(expect.arrayContaining(['Check', 'Watch']));
    client.stream.end();
    await once(client.stream, 'end');
    client.close();
  });

  it('gets every import of every file that it is told of', async () => {
    const client = reflectionClient(inUse.service.grpcPort, 'v1');
    const known = new Map<string, FileDescriptorProto>();
    const wanted = new Set(['payments/v1/payments.proto']);
    for (const fileByFilename of wanted) {
      for (const file of files(await client.ask({ fileByFilename }))) known.set(file.name, file);
      for (const name of known.get(fileByFilename)?.dependency ?? []) wanted.add(name);
    }
    expect([...wanted].filter((name) => !known.has(name))).toEqual([]);
    expect([...known.keys()]).toContain('idempotency/v1/policy.proto');
    client.stream.end();
    client.close();
  });

  it('is told NOT_FOUND for what is not served, and the stream goes on', async () => {
    const client = reflectionClient(inUse.service.grpcPort, 'v1');
    const { errorResponse } = await client.ask({ fileContainingSymbol: 'payments.v1.Nothing' });
    expect(errorResponse?.errorCode).toBe(status.NOT_FOUND);
    expect(await client.ask({ listServices: '*' })).toHaveProperty('listServicesResponse');
    client.stream.end();
    client.close();
  });

  it('may hang up in the middle, and the next one is served', async () => {
    const rude = reflectionClient(inUse.service.grpcPort, 'v1');
    await rude.ask({ listServices: '*' });
    const cancelled = once(rude.stream, 'error');
    rude.stream.cancel();
    expect(await cancelled).toMatchObject([{ code: status.CANCELLED }]);
    rude.close();
    const next = reflectionClient(inUse.service.grpcPort, 'v1');
    expect(await next.ask({ listServices: '*' })).toHaveProperty('listServicesResponse');
    next.stream.end();
    next.close();
  });
});

describe('a reflection stream that nobody ends', () => {
  let database: TestDatabase;
  let service: TestService;
  beforeAll(async () => {
    database = await createTestDatabase();
    service = await startTestService({ connectionString: database.connectionString });
  });
  afterAll(() => database.drop());

  it('does not keep the service from stopping, and claims nothing', async () => {
    const client = reflectionClient(service.grpcPort, 'v1');
    await client.ask({ listServices: '*' });
    const broken = once(client.stream, 'error');
    const startedAt = performance.now();
    await service.stop();
    await broken;
    // The grace, 30 s, is for handlers.
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(await database.count('idempotency_record')).toBe(0);
    expect(service.lines.filter(({ level }) => level === 'error')).toEqual([]);
    client.close();
  });
});
