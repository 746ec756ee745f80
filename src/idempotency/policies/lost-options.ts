import { type DescExtension, type FileRegistry, type Message, toBinary } from '@bufbuild/protobuf';
import {
  type DescriptorProto,
  type FieldDescriptorProto,
  FieldOptionsSchema,
  type FileDescriptorProto,
  type MethodDescriptorProto,
} from '@bufbuild/protobuf/wkt';
import { NOT_IN_FINGERPRINT } from '../message-shape';
import { POLICY_OPTION } from './policy-option';

/** The two options of this package, as the set declares them. */
interface OurOptions {
  readonly policy: DescExtension;
  readonly notInFingerprint: DescExtension;
}

/**
 * The signs that a descriptor set once had options and lost them: to a library that decodes and encodes it again without
 * knowing them. Read as it is, methods would be governed by their level alone, and a retry at another time of the
 * client's clock would be another request.
 *
 * A field gets options only with something in them (a method with an empty body has empty ones), and compilers complain
 * of an import that nothing uses.
 *
 * @returns one line for each sign; none where the set is whole, or has nothing to do with the options of this package
 */
export function lostOptions(files: readonly FileDescriptorProto[], registry: FileRegistry): readonly string[] {
  const policy = registry.getExtension(POLICY_OPTION);
  const notInFingerprint = registry.getExtension(NOT_IN_FINGERPRINT);
  if (policy === undefined || notInFingerprint === undefined) return [];
  const ours = { policy, notInFingerprint };
  return files.flatMap((file) => signsIn(file, ours));
}

function signsIn(file: FileDescriptorProto, ours: OurOptions): readonly string[] {
  const methods = file.service.flatMap(({ method }) => method);
  const fields = file.messageType.flatMap((message) => fieldsOf(message, file.package));
  const signs = fields
    .filter(({ options }) => options !== undefined && toBinary(FieldOptionsSchema, options).length === 0)
    .map(({ path }) => `${file.name}: ${path}: expected options where an empty message stands for them`);
  const carries =
    methods.some(({ options }) => has(options, ours.policy)) ||
    fields.some(({ options }) => has(options, ours.notInFingerprint));
  if (carries || !importsForOptions(file, ours, methods, fields)) return signs;
  return [
    ...signs,
    `${file.name}: expected a method with (${POLICY_OPTION}) or a field with (${NOT_IN_FINGERPRINT}), ` +
      `since it imports ${ours.policy.file.proto.name}`,
  ];
}

type FieldPlace = FieldDescriptorProto & { readonly path: string };

function fieldsOf(message: DescriptorProto, scope: string): readonly FieldPlace[] {
  const name = `${scope}.${message.name}`;
  return [
    ...message.field.map((field) => ({ ...field, path: `${name}.${field.name}` })),
    ...message.nestedType.flatMap((nested) => fieldsOf(nested, name)),
  ];
}

function has(options: Message | undefined, { number }: DescExtension): boolean {
  return options?.$unknown?.some(({ no }) => no === number) ?? false;
}

/** It may also import the file to hand it on, or to speak of policies in its messages. */
function importsForOptions(
  file: FileDescriptorProto,
  { policy }: OurOptions,
  methods: readonly MethodDescriptorProto[],
  fields: readonly FieldDescriptorProto[],
): boolean {
  const place = file.dependency.indexOf(policy.file.proto.name);
  if (place < 0 || file.publicDependency.includes(place)) return false;
  const types = [...policy.file.messages, ...policy.file.enums].map(({ typeName }) => `.${typeName}`);
  const used = [
    ...fields.map(({ typeName }) => typeName),
    ...methods.flatMap(({ inputType, outputType }) => [inputType, outputType]),
  ];
  return !used.some((type) => types.includes(type));
}
