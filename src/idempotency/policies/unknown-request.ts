import { create, createFileRegistry, type DescMessage } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';

const NAME = 'Unknown';

/** Stands for the type of a request where that is not known: a message without fields. */
export const UNKNOWN_REQUEST: DescMessage = unknownRequest();

function unknownRequest(): DescMessage {
  const file = create(FileDescriptorProtoSchema, { name: 'unknown.proto', messageType: [{ name: NAME }] });
  const message = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] })).getMessage(NAME);
  if (message === undefined) throw new Error('a message that was just made is not there');
  return message;
}
