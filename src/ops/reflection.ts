import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import type { Server } from '@grpc/grpc-js';
import { ReflectionService } from '@grpc/reflection';
import { service as healthService } from 'grpc-health-check';

/** The grpc.reflection services of one server. */
export interface Reflection {
  /** Adds them; call it before the server listens. */
  addTo(server: Server): void;
}

/** What a server tells about itself. */
export interface ReflectionOptions {
  /** The protos of what is served, with all imports, as a serialized google.protobuf.FileDescriptorSet. */
  readonly descriptorSet: Uint8Array;
  /** The services to list beside grpc.health.v1.Health, such as `payments.v1.PaymentsService`. */
  readonly services: readonly string[];
}

/**
 * Creates server reflection, grpc.reflection.v1 and v1alpha, so that tools such as grpcurl and ghz need no proto files.
 * Levels are told; options of other packages, among them the policies, are not: the library leaves out what it does not
 * know.
 *
 * A client may keep its stream open for ever, as with health: a shutdown has to cut it.
 */
export function createReflection({ descriptorSet, services }: ReflectionOptions): Reflection {
  const own = fromBinary(FileDescriptorSetSchema, descriptorSet).file.map((file) =>
    Buffer.from(toBinary(FileDescriptorProtoSchema, file)),
  );
  const health = Object.values(healthService).flatMap(({ requestType, responseType }) => [
    ...requestType.fileDescriptorProtos,
    ...responseType.fileDescriptorProtos,
  ]);
  // Of a package definition only the files are read, so one entry carries them all.
  const files = {
    format: 'Protocol Buffer 3 EnumDescriptorProto',
    ...{ type: {}, fileDescriptorProtos: [...own, ...health] },
  } as const;
  const reflection = new ReflectionService({ files }, { services: [...services, 'grpc.health.v1.Health'] });
  return { addTo: (server) => reflection.addToServer(server) };
}
