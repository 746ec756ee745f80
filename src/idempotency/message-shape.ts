import {
  type DescExtension,
  type DescField,
  type DescFile,
  type DescMessage,
  getOption,
  ScalarType,
} from '@bufbuild/protobuf';
import { FeatureSet_FieldPresence as Presence } from '@bufbuild/protobuf/wkt';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { type NumberForm, numberForm } from './number-form';

/** What the walk over a request has to know of a value: a number, a string or bytes, or a message. */
export type ValueShape =
  | { readonly kind: 'number'; readonly form: NumberForm }
  | { readonly kind: 'bytes' }
  | { readonly kind: 'message'; readonly shape: MessageShape };

/** How the values of one field make up its meaning. */
export type FieldLayout =
  /** One value; `implicitPresence` where its default can't be told from an absent field. */
  | { readonly kind: 'singular'; readonly value: ValueShape; readonly implicitPresence: boolean }
  /** Any number of values, in their order. */
  | { readonly kind: 'repeated'; readonly value: ValueShape }
  /** Any number of numbers, in their order, one by one or many at once in a length-delimited value. */
  | { readonly kind: 'packed'; readonly form: NumberForm }
  /** Any number of entries, whose order says nothing; where `laterWins`, the last of those with one key. */
  | { readonly kind: 'map'; readonly entry: MessageShape; readonly laterWins: boolean };

/** What the walk has to know of a field. */
export interface FieldShape {
  readonly number: number;
  /** What one value has on the wire; anything else makes it an unknown field, but for packed numbers. */
  readonly wireType: WireType;
  readonly layout: FieldLayout;
  /** Which oneof of its message it belongs to, counted from 0. */
  readonly oneof: number | undefined;
  /** Takes no part in the comparison: option `(idempotency.v1.not_in_fingerprint)`. */
  readonly leftOut: boolean;
  /** What an absent field stands for, as on the wire; only the key and the value of a map entry have it. */
  readonly whenAbsent: Uint8Array | undefined;
}

/** What the walk has to know of a message. */
export interface MessageShape {
  /** In the order of their numbers. */
  readonly fields: readonly FieldShape[];
  /** Field number → place in `fields`. */
  readonly slots: ReadonlyMap<number, number>;
}

/** Name of the option of fields that take no part in the comparison of requests. */
export const NOT_IN_FINGERPRINT = 'idempotency.v1.not_in_fingerprint';

/** Saves work only: a shape is a function of its descriptor, which never changes. */
const shapes = new WeakMap<DescMessage, MessageShape>();

/** The shape of a message type; worked out at the first call, since it is needed on every request. */
export function messageShape(message: DescMessage): MessageShape {
  const known = shapes.get(message);
  if (known) return known;
  const fields: FieldShape[] = [];
  const slots = new Map<number, number>();
  const shape: MessageShape = { fields, slots };
  // Before its fields, because a message may contain itself.
  shapes.set(message, shape);
  const option = findExtension(message.file, NOT_IN_FINGERPRINT);
  for (const field of message.fields.toSorted((left, right) => left.number - right.number)) {
    slots.set(field.number, fields.length);
    fields.push(fieldShape(field, option !== undefined && getOption(field, option) === true));
  }
  return shape;
}

function fieldShape(field: DescField, leftOut: boolean): FieldShape {
  const layout = fieldLayout(field);
  const delimited = 'delimitedEncoding' in field && field.delimitedEncoding;
  const oneof = isClosed(field) ? undefined : field.oneof;
  return {
    number: field.number,
    wireType: delimited ? WireType.StartGroup : wireTypeOf(layout),
    layout,
    oneof: oneof && field.parent.oneofs.indexOf(oneof),
    leftOut,
    whenAbsent: undefined,
  };
}

function fieldLayout(field: DescField): FieldLayout {
  if (field.fieldKind === 'map') return { kind: 'map', entry: entryShape(field), laterWins: !isClosed(field) };
  const value = valueShape(field);
  if (field.fieldKind === 'list' && value.kind === 'number') return { kind: 'packed', form: value.form };
  if (field.fieldKind === 'list' || isClosed(field)) return { kind: 'repeated', value };
  return { kind: 'singular', value, implicitPresence: field.presence === Presence.IMPLICIT };
}

/**
 * A reader of a closed enum sets a number that it doesn't know aside and takes an earlier one instead. Which numbers
 * those are differs between releases, so every occurrence counts and none displaces another.
 */
function isClosed(field: DescField): boolean {
  return field.enum?.open === false;
}

function entryShape(field: DescField & { fieldKind: 'map' }): MessageShape {
  const key = valueShape({ scalar: field.mapKey, message: undefined });
  const fields = [entryField(1, key, 0), entryField(2, valueShape(field), field.enum?.values[0]?.number ?? 0)];
  return { fields, slots: new Map(fields.map(({ number }, slot) => [number, slot])) };
}

function entryField(number: number, value: ValueShape, absentNumber: number): FieldShape {
  const layout: FieldLayout = { kind: 'singular', value, implicitPresence: false };
  const wireType = wireTypeOf(layout);
  const whenAbsent = new BinaryWriter().tag(number, wireType);
  if (wireType === WireType.Bit64) whenAbsent.fixed64(absentNumber);
  else if (wireType === WireType.Bit32) whenAbsent.fixed32(absentNumber);
  else whenAbsent.int32(absentNumber);
  return {
    number,
    wireType,
    layout,
    oneof: undefined,
    leftOut: false,
    whenAbsent: whenAbsent.finish(),
  };
}

function valueShape({ scalar, message }: Pick<DescField, 'scalar' | 'message'>): ValueShape {
  if (message) return { kind: 'message', shape: messageShape(message) };
  if (scalar === ScalarType.STRING || scalar === ScalarType.BYTES) return { kind: 'bytes' };
  return { kind: 'number', form: numberForm(scalar ?? ScalarType.INT32) };
}

function wireTypeOf(layout: FieldLayout): WireType {
  switch (layout.kind) {
    case 'packed':
      return layout.form.wireType;
    case 'map':
      return WireType.LengthDelimited;
    case 'singular':
    case 'repeated':
      return layout.value.kind === 'number' ? layout.value.form.wireType : WireType.LengthDelimited;
  }
}

/** An option can only be used in a file that imports, directly or not, the one that declares it. */
function findExtension(file: DescFile, typeName: string): DescExtension | undefined {
  const files = new Set([file]);
  for (const { extensions, dependencies } of files) {
    const found = extensions.find((extension) => extension.typeName === typeName);
    if (found) return found;
    for (const dependency of dependencies) files.add(dependency);
  }
  return undefined;
}
