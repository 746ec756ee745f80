import { type DescMessage, fromBinary } from '@bufbuild/protobuf';
import {
  type DescriptorProto,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  type MethodDescriptorProto,
} from '@bufbuild/protobuf/wkt';

import { NOT_IN_FINGERPRINT } from '../message-shape';
import { definitionTypes } from './definition-types';

/** The descriptors that proto-loader keeps beside a type: those of all protos of one load, with losses. */
export interface DefinitionFiles {
  /** Whether the protos declare the options of this package: then one of them may have used them. */
  readonly declareOptions: boolean;
  /** Whether a field has options; which ones is not told. */
  readonly haveFieldOptions: boolean;
  /** A method by its path. */
  method(path: string): MethodDescriptorProto | undefined;
  /** The type of a method's request, by the path of the method; undefined where it is not there, or not whole. */
  request(path: string): DescMessage | undefined;
}

const OUR_PACKAGE = NOT_IN_FINGERPRINT.slice(0, NOT_IN_FINGERPRINT.lastIndexOf('.'));
const OUR_NUMBERS: readonly number[] = [51871, 51872];

/** Reads the files of a definition, serialized google.protobuf.FileDescriptorProto each. */
export function readDefinitionFiles(protos: readonly Uint8Array[]): DefinitionFiles {
  const files = protos.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
  const methods = new Map(files.flatMap(methodsOf));
  const declareOptions = files.some(
    (file) => file.package === OUR_PACKAGE && file.extension.some(({ number }) => OUR_NUMBERS.includes(number)),
  );
  const types = definitionTypes(files, declareOptions);
  return {
    declareOptions,
    haveFieldOptions: files
      .filter((file) => file.package !== 'google.protobuf')
      .some(({ messageType }) => messageType.some(hasFieldOptions)),
    method: (path) => methods.get(path),
    request: (path) => {
      const type = methods.get(path)?.inputType;
      return type === undefined ? undefined : types(type.replace(/^\./, ''));
    },
  };
}

function methodsOf(file: FileDescriptorProto): [string, MethodDescriptorProto][] {
  const scope = file.package === '' ? '' : `${file.package}.`;
  return file.service.flatMap((service) =>
    service.method.map((method): [string, MethodDescriptorProto] => [
      `/${scope}${service.name}/${method.name}`,
      method,
    ]),
  );
}

function hasFieldOptions({ field, nestedType }: DescriptorProto): boolean {
  return field.some(({ options }) => options !== undefined) || nestedType.some(hasFieldOptions);
}
