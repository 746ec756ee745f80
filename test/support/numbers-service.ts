import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import type { MethodDefinition } from '@grpc/grpc-js';
import { compileProto } from './compile-proto';
import type { ServeOptions } from './served';
import { int32, wire } from './wire-fields';

const SOURCE = `
  syntax = "proto3";
  package test.v1;

  service NumbersService {
    rpc Add(AddRequest) returns (AddResponse);
  }
  message AddRequest {
    repeated int32 numbers = 1;
    int32 scale = 2;
  }
  message AddResponse {
    int32 sum = 1;
  }`;

export const ADD = '/test.v1.NumbersService/Add';

interface AddRequest {
  readonly numbers: readonly number[];
  readonly scale: number;
}

interface AddResponse {
  readonly sum: number;
}

/** A service whose request has a repeated number, which no payment has. Its effect is a row of the table `sums`. */
export function numbersService(): Omit<ServeOptions, 'connectionString'> {
  const descriptorSet = compileProto(SOURCE);
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptorSet));
  const request = registry.getMessage('test.v1.AddRequest');
  if (request === undefined) throw new Error('test.v1.AddRequest is missing');
  const unused = (): never => {
    throw new Error('only the server side is used');
  };
  const add: MethodDefinition<AddRequest, AddResponse> = {
    path: ADD,
    ...{ requestStream: false, responseStream: false, requestSerialize: unused, responseDeserialize: unused },
    requestDeserialize: (bytes) => fromBinary(request, bytes) as unknown as AddRequest,
    responseSerialize: ({ sum }) => Buffer.from(wire(int32(1, sum))),
  };
  return {
    descriptorSet,
    add: (idempotency, server) =>
      idempotency.addService(
        server,
        { add },
        {
          add: ({ numbers }, attempt) =>
            attempt.complete(async (tx) => {
              const sum = numbers.reduce((total, number) => total + number, 0);
              await tx.$executeRaw`INSERT INTO sums (total) VALUES (${sum})`;
              return { sum };
            }),
        },
      ),
  };
}
