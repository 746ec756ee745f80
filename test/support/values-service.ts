import { createFileRegistry, fromBinary, type Message, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import type { MethodDefinition } from '@grpc/grpc-js';
import type { Prisma } from '../../src/gen/prisma/client';
import type { Handler } from '../../src/idempotency/index';
import { compileProto } from './compile-proto';
import type { ServeOptions } from './served';

const SOURCE = `
  syntax = "proto3";
  package test.v1;
  import "google/protobuf/empty.proto";
  service ValuesService {
    rpc Echo(Values) returns (Values);
    rpc Take(Values) returns (google.protobuf.Empty);
    rpc Break(Values) returns (Values);
  }
  message Values {
    optional string text = 1;
    int64 signed = 2;
    uint64 unsigned = 3;
  }`;

/** Answers with what it was sent, decoded and encoded. */
export const ECHO = '/test.v1.ValuesService/Echo';
/** Answers with nothing. */
export const TAKE = '/test.v1.ValuesService/Take';
/** Answers with one byte, which is no message. */
export const BREAK = '/test.v1.ValuesService/Break';

type Method = MethodDefinition<Message, Buffer> & { readonly requestStream: false; readonly responseStream: false };

/** A service whose requests have presence and 64 bits of both kinds, which no payment has. Its effect is a row of `taken`. */
export function valuesService(): Omit<ServeOptions, 'connectionString'> {
  const descriptorSet = compileProto(SOURCE);
  const values = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptorSet)).getMessage('test.v1.Values');
  if (values === undefined) throw new Error('test.v1.Values is missing');
  const unused = (): never => {
    throw new Error('only the server side is used');
  };
  const method = (path: string): Method => ({
    path,
    ...{ requestStream: false, responseStream: false, requestSerialize: unused, responseDeserialize: unused },
    requestDeserialize: (bytes) => fromBinary(values, bytes),
    responseSerialize: (response) => response,
  });
  const methods = { echo: method(ECHO), take: method(TAKE), break: method(BREAK) };
  return {
    descriptorSet,
    add: (idempotency, server) => {
      const answering =
        (answer: (message: Message) => Uint8Array): Handler<Prisma.TransactionClient, Message, Buffer> =>
        (message, attempt) =>
          attempt.complete(async (tx) => {
            await tx.$executeRaw`INSERT INTO taken DEFAULT VALUES`;
            return Buffer.from(answer(message));
          });
      idempotency.addService(server, methods, {
        echo: answering((message) => toBinary(values, message)),
        take: answering(() => Buffer.alloc(0)),
        break: answering(() => Buffer.of(0)),
      });
    },
  };
}
