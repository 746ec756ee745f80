import { create, createFileRegistry, fromBinary, getExtension, setExtension, toBinary } from '@bufbuild/protobuf';
import { DurationSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';

/**
 * A copy of a descriptor set in which the claims of one method are held for a shorter time, so that nobody has to wait
 * half a minute for a takeover.
 *
 * @param method such as `CreatePayment`; it must have an option `(idempotency.v1.policy)`
 * @param leaseSeconds whole seconds
 */
export function withLease(descriptorSet: Uint8Array, method: string, leaseSeconds: number): Uint8Array {
  const set = fromBinary(FileDescriptorSetSchema, descriptorSet);
  const option = createFileRegistry(set).getExtension('idempotency.v1.policy');
  const options = set.file
    .flatMap(({ service }) => service)
    .flatMap((service) => service.method)
    .find(({ name }) => name === method)?.options;
  if (option === undefined || options === undefined) throw new Error(`${method} has no policy in these protos`);
  const lease = create(DurationSchema, { seconds: BigInt(leaseSeconds) });
  setExtension(options, option, Object.assign(getExtension(options, option) as object, { lease }));
  return toBinary(FileDescriptorSetSchema, set);
}
