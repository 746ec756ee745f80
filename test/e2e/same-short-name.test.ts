import { randomUUID } from 'node:crypto';
import { createFileRegistry, fromBinary, type Message } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { type MethodDefinition, status } from '@grpc/grpc-js';
import { compileProto } from '../support/compile-proto';
import { createForeignClient, type ForeignClient } from '../support/foreign-client';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { type Served, serve } from '../support/served';
import { string, wire } from '../support/wire-fields';

const SERVICES = ['test.v1.Orders', 'test.v1.Shipments'] as const;
const SOURCE = `
  syntax = "proto3";
  package test.v1;
  message Order { string id = 1; }
  service Orders { rpc Create(Order) returns (Order); }
  service Shipments { rpc Create(Order) returns (Order); }`;

describe('two services with a method of the same short name and the same types (case F2)', () => {
  let database: TestDatabase;
  let served: Served;
  let client: ForeignClient;

  beforeAll(async () => {
    database = await createTestDatabase();
    await database.rows('CREATE TABLE made (service text)');
    const descriptorSet = compileProto(SOURCE);
    const order = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptorSet)).getMessage('test.v1.Order');
    if (order === undefined) throw new Error('test.v1.Order is missing');
    const unused = (): never => {
      throw new Error('only the server side is used');
    };
    served = await serve({
      ...{ connectionString: database.connectionString, descriptorSet },
      add: (idempotency, server) => {
        for (const service of SERVICES) {
          const create: MethodDefinition<Message, string> = {
            path: `/${service}/Create`,
            ...{ requestStream: false, responseStream: false, requestSerialize: unused, responseDeserialize: unused },
            requestDeserialize: (bytes) => fromBinary(order, bytes),
            responseSerialize: (id) => Buffer.from(wire(string(1, id))),
          };
          idempotency.addService(
            server,
            { create },
            {
              create: (_, attempt) =>
                attempt.complete(async (tx) => {
                  await tx.$executeRaw`INSERT INTO made (service) VALUES (${service})`;
                  return `made by ${service}`;
                }),
            },
          );
        }
      },
    });
    client = createForeignClient(served.port);
  });

  afterAll(async () => {
    client.close();
    await served.stop();
    await database.drop();
  });

  it('both run under one key, and each is told its own answer again', async () => {
    const [requestId, bytes] = [randomUUID(), wire(string(1, 'order-1'))];
    for (const replayed of [false, true]) {
      for (const service of SERVICES) {
        expect(await client.send(`/${service}/Create`, bytes, requestId)).toMatchObject({
          ...{ code: status.OK, replayed, bytes: Buffer.from(wire(string(1, `made by ${service}`))) },
        });
      }
    }
    expect(await database.rows('SELECT service FROM made ORDER BY service')).toEqual(
      SERVICES.map((service) => ({ service })),
    );
    expect(await database.count("idempotency_record WHERE state = 'completed'")).toBe(2);
  });
});
