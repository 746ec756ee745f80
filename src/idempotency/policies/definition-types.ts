import { create, createFileRegistry, type DescMessage, type FileRegistry, isFieldSet } from '@bufbuild/protobuf';
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  EnumDescriptorProtoSchema,
  type FieldDescriptorProto,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProtoSchema,
  DescriptorProtoSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from '@bufbuild/protobuf/wkt';

/** Where no option of this package can be, since the protos are not ours to write. */
const WELL_KNOWN = 'google.protobuf';

/**
 * The types of a definition of proto-loader, mended. Its descriptors name types relative to their place, call the entries
 * of maps what else may have the same name, and don't say whether they are of proto2, proto3 or an edition; and of the
 * options of fields they keep no custom ones.
 *
 * So every field is taken to have presence and every enum to be closed, as in proto2: what may differ in meaning is then
 * compared, and at worst a retry that was encoded otherwise is another request. A type with what can't be mended is not
 * handed out: with a field that has options where one of them may be `not_in_fingerprint`, or a name that stands for
 * two types.
 *
 * @param files all that came with the definition
 * @param declareOptions whether fields can have options of this package
 */
export function definitionTypes(
  files: readonly FileDescriptorProto[],
  declareOptions: boolean,
): (typeName: string) => DescMessage | undefined {
  // Clients need no types, and a definition without options is refused before.
  let mended: Mended | undefined;
  return (typeName) => {
    mended ??= mend(files, declareOptions);
    const message = mended.registry?.getMessage(typeName);
    return message === undefined || reaches(message, mended.broken, new Set()) ? undefined : message;
  };
}

interface Mended {
  /** Undefined where the descriptors are none even when they are mended. */
  readonly registry: FileRegistry | undefined;
  readonly broken: ReadonlySet<string>;
}

/** Whether a message is one of the broken ones or has one in it. */
function reaches(message: DescMessage, broken: ReadonlySet<string>, seen: Set<DescMessage>): boolean {
  if (broken.has(message.typeName)) return true;
  if (seen.has(message)) return false;
  seen.add(message);
  return message.fields.some((field) => field.message !== undefined && reaches(field.message, broken, seen));
}

interface Mending {
  /** Full names of all messages and enums but the entries of maps. */
  readonly names: ReadonlySet<string>;
  /** Full names of messages that can't be mended. */
  readonly broken: Set<string>;
  readonly declareOptions: boolean;
}

function mend(files: readonly FileDescriptorProto[], declareOptions: boolean): Mended {
  const names = new Set(files.flatMap((file) => namesIn(file.package, file.messageType, file.enumType)));
  const mending = { names, broken: new Set<string>(), declareOptions };
  const root = create(DescriptorProtoSchema);
  for (const file of files) {
    const place = packageMessage(root, file.package);
    place.nestedType.push(...file.messageType.map((message) => mendMessage(message, file.package, mending)));
    place.enumType.push(...file.enumType.map(bare));
  }
  // One file for all, since it is not told which imports which.
  const whole = create(FileDescriptorProtoSchema, {
    name: 'definition.proto',
    messageType: root.nestedType,
    enumType: root.enumType,
  });
  try {
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [whole] }));
    return { registry, broken: mending.broken };
  } catch {
    return { registry: undefined, broken: mending.broken };
  }
}

/** Stands for a package in a file that has none: messages in one another give their types the same full names. */
function packageMessage(root: DescriptorProto, name: string): DescriptorProto {
  let place = root;
  for (const part of name === '' ? [] : name.split('.')) {
    const known = place.nestedType.find((nested) => nested.name === part);
    const next = known ?? create(DescriptorProtoSchema, { name: part });
    if (known === undefined) place.nestedType.push(next);
    place = next;
  }
  return place;
}

function mendMessage(message: DescriptorProto, scope: string, mending: Mending): DescriptorProto {
  const fullName = within(scope, message.name);
  const entries = message.nestedType.filter(isMapEntry);
  const fields = message.field.filter((field) => !isExtension(field));
  const maps = fields.filter((field) => entries.some(({ name }) => isMapOf(field, name)));
  const isWellKnown = scope === WELL_KNOWN || scope.startsWith(`${WELL_KNOWN}.`);
  if (mending.declareOptions && !isWellKnown && fields.some(({ options }) => options !== undefined)) {
    mending.broken.add(fullName);
  }
  const entryName = ({ number }: FieldDescriptorProto): string => {
    let name = `Entry${number}`;
    while (mending.names.has(within(fullName, name))) name += '_';
    return name;
  };
  return create(DescriptorProtoSchema, {
    name: message.name,
    field: fields.map((field) =>
      maps.includes(field)
        ? mendField(field, `.${fullName}.${entryName(field)}`)
        : mendField(field, resolve(field, fullName, fullName, mending)),
    ),
    nestedType: [
      ...message.nestedType
        .filter((nested) => !isMapEntry(nested))
        .map((nested) => mendMessage(nested, fullName, mending)),
      ...maps.map((field, place) => {
        const entry = entries[place];
        return create(DescriptorProtoSchema, {
          name: entryName(field),
          field: entry?.field.map((part) => mendField(part, resolve(part, scope, fullName, mending))) ?? [],
          options: { mapEntry: true },
        });
      }),
    ],
    enumType: message.enumType.map(bare),
    oneofDecl: message.oneofDecl.map(({ name }) => ({ name })),
  });
}

function mendField(field: FieldDescriptorProto, typeName: string): FieldDescriptorProto {
  const { name, number, label, type } = field;
  const oneof = isFieldSet(field, FieldDescriptorProtoSchema.field.oneofIndex) ? { oneofIndex: field.oneofIndex } : {};
  return create(FieldDescriptorProtoSchema, { name, number, label, type, typeName, ...oneof });
}

/** The full name of a field's type, from one that is relative to a scope; it may be in that or in any around it. */
function resolve({ typeName }: FieldDescriptorProto, scope: string, owner: string, mending: Mending): string {
  if (typeName === '') return '';
  const scopes = scope.split('.').map((_, place, parts) => parts.slice(0, parts.length - place).join('.'));
  const found = [...scopes, ''].map((outer) => within(outer, typeName)).filter((name) => mending.names.has(name));
  const [name = typeName] = found;
  if (found.length !== 1) mending.broken.add(owner);
  return `.${name}`;
}

function namesIn(
  scope: string,
  messages: readonly DescriptorProto[],
  enums: readonly EnumDescriptorProto[],
): readonly string[] {
  return [
    ...enums.map(({ name }) => within(scope, name)),
    ...messages
      .filter((message) => !isMapEntry(message))
      .flatMap(({ name, nestedType, enumType }) => [
        within(scope, name),
        ...namesIn(within(scope, name), nestedType, enumType),
      ]),
  ];
}

function within(scope: string, name: string): string {
  return scope === '' ? name : `${scope}.${name}`;
}

/** Extensions stand among the fields: those that a message declares, and under a name with a dot those of it. */
function isExtension({ extendee, name }: FieldDescriptorProto): boolean {
  return extendee !== '' || name.startsWith('.');
}

function isMapEntry({ options }: DescriptorProto): boolean {
  return options?.mapEntry === true;
}

/** proto-loader calls the entry of a map what its field is called, with a capital. */
function isMapOf({ name, label, typeName }: FieldDescriptorProto, entry: string): boolean {
  return label === Label.REPEATED && typeName === entry && entry === name.charAt(0).toUpperCase() + name.slice(1);
}

function bare({ name, value }: EnumDescriptorProto): EnumDescriptorProto {
  return create(EnumDescriptorProtoSchema, {
    name,
    value: value.map((one) => ({ name: one.name, number: one.number })),
  });
}
