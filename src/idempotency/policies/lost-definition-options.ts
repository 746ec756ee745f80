import { toBinary } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel as ProtoLevel, MethodOptionsSchema } from '@bufbuild/protobuf/wkt';
import type { DefinedMethod } from './defined-methods';

/**
 * The signs that a definition of proto-loader has lost the options of its protos, as
 * `loadFileDescriptorSetFromBuffer` makes them: every method then reads as one of an unknown level, and its descriptor
 * says otherwise.
 *
 * @returns one line for each sign; none where the options are there
 */
export function lostDefinitionOptions(methods: readonly DefinedMethod[]): readonly string[] {
  const lost = methods.filter(({ options }) => options === undefined || saysNothing(options)).filter(hadOptions);
  if (lost.length > 0) return lost.map(({ path }) => `${path}: expected the options that its descriptor tells of`);
  const silent = methods.every(({ options, files }) => {
    return options !== undefined && saysNothing(options) && files.declareOptions && !files.haveFieldOptions;
  });
  if (!silent || methods.length === 0) return [];
  return ['expected an option on some method or field, since the protos import those of this package'];
}

/** As proto-loader fills in where it found nothing. */
function saysNothing(options: Readonly<Record<string, unknown>>): boolean {
  const { deprecated, idempotency_level: level, uninterpreted_option: uninterpreted, ...rest } = options;
  const empty = !Array.isArray(uninterpreted) || uninterpreted.length === 0;
  return deprecated !== true && (level ?? 'IDEMPOTENCY_UNKNOWN') === 'IDEMPOTENCY_UNKNOWN' && empty && isEmpty(rest);
}

function isEmpty(options: object): boolean {
  return Object.keys(options).length === 0;
}

/**
 * Its descriptor has options: empty ones where all of them were custom. One that only spells out a default is no sign,
 * since that reads like nothing.
 */
function hadOptions({ path, options, files }: DefinedMethod): boolean {
  // An older proto-loader reads none at all.
  if (options === undefined) return true;
  const described = files.method(path)?.options;
  if (described === undefined) return false;
  const { deprecated, idempotencyLevel } = described;
  return (
    deprecated ||
    idempotencyLevel !== ProtoLevel.IDEMPOTENCY_UNKNOWN ||
    toBinary(MethodOptionsSchema, described).length === 0
  );
}
