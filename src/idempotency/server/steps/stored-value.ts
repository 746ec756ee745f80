/**
 * How results of phases and effects are stored: JSON, with what JSON can't hold written as a tagged pair. What is read is
 * equal to what was written, or it is not written at all.
 *
 * Held: undefined, null, booleans, strings, all numbers (NaN, infinities and -0 too), bigint, bytes (read as a Buffer),
 * dates, arrays and plain objects of these, such as messages of generated code.
 */

/** A value can't be stored: it would not be read as what it is. */
export class UnstorableValueError extends TypeError {
  override readonly name = 'UnstorableValueError';

  /**
   * @param path where it is, as `charge.items[2].price`
   * @param what what it is
   */
  constructor(path: string, what: string) {
    super(
      `${path}: ${what} can't be stored; return undefined, null, a boolean, number, string, bigint, bytes, date, or plain ` +
        'arrays and objects of these',
    );
  }
}

/** JSON of the stored form: an object stands as its entries, so that no key of it can be taken for a tag. */
type Stored = null | boolean | number | string | readonly ['array' | 'object' | Tag, ...unknown[]];
type Tag = 'undefined' | 'number' | 'bigint' | 'bytes' | 'date';

/**
 * Serializes a value.
 *
 * @param name stands for the value in what is thrown
 * @throws UnstorableValueError that names what can't be stored
 */
export function encodeValue(value: unknown, name: string): string {
  return JSON.stringify(store(value, name, new Set()));
}

/** Reads what {@link encodeValue} wrote. */
export function decodeValue(text: string): unknown {
  return restore(JSON.parse(text) as Stored);
}

function store(value: unknown, path: string, within: ReadonlySet<object>): Stored {
  switch (typeof value) {
    case 'undefined':
      return ['undefined'];
    case 'boolean':
    case 'string':
      return value;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0)
        ? value
        : ['number', Object.is(value, -0) ? '-0' : String(value)];
    case 'bigint':
      return ['bigint', String(value)];
    case 'object':
      return value === null ? null : storeObject(value, path, within);
    case 'function':
    case 'symbol':
      throw new UnstorableValueError(path, `a ${typeof value}`);
  }
}

function storeObject(value: object, path: string, within: ReadonlySet<object>): Stored {
  if (within.has(value)) throw new UnstorableValueError(path, 'an object that holds itself');
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) throw new UnstorableValueError(path, 'an invalid date');
    return ['date', value.getTime()];
  }
  if (value instanceof Uint8Array) return ['bytes', Buffer.from(value).toString('base64')];
  const deeper = new Set(within).add(value);
  if (Array.isArray(value)) {
    // Array.from: a hole is no value, and reads as undefined.
    return ['array', ...Array.from(value, (item, index) => store(item, `${path}[${index}]`, deeper))];
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw new UnstorableValueError(path, `an object of class ${value.constructor.name}`);
  }
  if (Object.getOwnPropertySymbols(value).length > 0)
    throw new UnstorableValueError(path, 'an object with symbols as keys');
  return ['object', ...Object.entries(value).map(([key, item]) => [key, store(item, `${path}.${key}`, deeper)])];
}

function restore(stored: Stored): unknown {
  if (stored === null || typeof stored !== 'object') return stored;
  const [tag, ...rest] = stored;
  switch (tag) {
    case 'undefined':
      return undefined;
    case 'number':
      return Number(rest[0]);
    case 'bigint':
      return BigInt(String(rest[0]));
    case 'bytes':
      return Buffer.from(String(rest[0]), 'base64');
    case 'date':
      return new Date(Number(rest[0]));
    case 'array':
      return (rest as Stored[]).map(restore);
    case 'object':
      // fromEntries defines its keys, so that one named __proto__ is a key like any other.
      return Object.fromEntries((rest as [string, Stored][]).map(([key, item]) => [key, restore(item)]));
  }
}
