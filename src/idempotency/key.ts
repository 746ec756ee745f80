import type { KeyFormat } from './policy';

/** A key as every other part of the package uses it: read once, from the metadata of the call. */
export interface RequestKey {
  /** The key itself; a UUID in lower case, so that both cases are the same key (RFC 9562, 4). */
  readonly text: string;
  /** The time inside a UUIDv7, milliseconds since 1970 by the maker's clock; undefined for every other key. */
  readonly dated: { readonly atMs: number } | undefined;
  /**
   * The partition of the record, `YYYY-MM-DD`: the UTC day of a dated key, 1970-01-01 for an undated one. The year has
   * five digits from 10000 on, as Postgres writes it. A date that old or that far ahead is refused by the claim, by the
   * database clock, so here it only has to be always the same.
   */
  readonly bucket: string;
}

/** What the metadata of a call says instead of a key. */
type NoKey =
  /** There is no key, or it is empty: never a key of its own that callers could share (case G3). */
  | { readonly kind: 'missing' }
  /** `description` says what was expected and never repeats the key. */
  | { readonly kind: 'malformed'; readonly description: string };

/** What the metadata of a call says about its key. */
export type KeyReading = NoKey | { readonly kind: 'key'; readonly key: RequestKey };

/** The same for those who keep no records: the text of the key, and the time inside a dated one. */
export type KeyTextReading = NoKey | { readonly kind: 'key'; readonly text: string; readonly atMs: number | undefined };

/** RFC 9562, 4: any version, any variant. */
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** RFC 9562, 5.9 and 5.10. Programs that forgot to fill in a key send these. */
const NIL = '00000000-0000-0000-0000-000000000000';
const MAX = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
/** Visible ASCII without the comma, which is how several values of one name arrive. */
const OPAQUE = /^[\x21-\x2b\x2d-\x7e]{16,128}$/;

const UNDATED_BUCKET = '1970-01-01';

/**
 * Reads the key of a call.
 *
 * What looks like a UUID is one under every format: its case is folded, it is dated if it is a UUIDv7, and the nil and
 * the max UUID are refused. So a policy that changes its format never moves a record (design 4.2).
 *
 * @param values what the metadata holds under the key's name, as grpc-js gives it: several values sent by a client
 *   arrive joined with ", ", a padded one does not arrive at all (case G1)
 * @param format what the method's policy asks for
 */
export function parseKey(values: readonly (string | Buffer)[], format: KeyFormat): KeyReading {
  const reading = readKeyText(values, format);
  if (reading.kind !== 'key') return reading;
  const { text, atMs } = reading;
  if (atMs === undefined) return { kind: 'key', key: { text, dated: undefined, bucket: UNDATED_BUCKET } };
  return { kind: 'key', key: { text, dated: { atMs }, bucket: utcDay(atMs) } };
}

/** Reads a key as {@link parseKey} does, without the partition of its record, which costs more than all the rest. */
export function readKeyText(values: readonly (string | Buffer)[], format: KeyFormat): KeyTextReading {
  if (values.length > 1) return malformed('expected one value, got several');
  const value = values[0];
  if (value === undefined || value === '') return { kind: 'missing' };
  if (typeof value !== 'string') return malformed('expected text, got binary metadata');
  if (value.includes(',')) return malformed('expected one value without a comma');
  if (UUID.test(value)) return parseUuid(value.toLowerCase(), format);
  switch (format) {
    case 'OPAQUE':
      if (!OPAQUE.test(value))
        return malformed('expected 16 to 128 printable ASCII characters without space and comma');
      return { kind: 'key', text: value, atMs: undefined };
    case 'UUID':
      return malformed('expected a UUID');
    case 'UUID_V7':
      return malformed('expected a UUID of version 7');
  }
}

function parseUuid(text: string, format: KeyFormat): KeyTextReading {
  if (text === NIL || text === MAX) return malformed('expected a UUID that is neither the nil nor the max UUID');
  if (isVersion7(text)) {
    const atMs = Number.parseInt(text.slice(0, 8), 16) * 0x1_0000 + Number.parseInt(text.slice(9, 13), 16);
    return { kind: 'key', text, atMs };
  }
  if (format === 'UUID_V7') return malformed('expected a UUID of version 7');
  return { kind: 'key', text, atMs: undefined };
}

/** RFC 9562, 5.7: version 7, variant 10. */
function isVersion7(uuid: string): boolean {
  const variant = uuid[19];
  return uuid[14] === '7' && (variant === '8' || variant === '9' || variant === 'a' || variant === 'b');
}

function utcDay(atMs: number): string {
  const date = new Date(atMs);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()];
  return `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)}`;
}

function pad(value: number, length: number): string {
  return String(value).padStart(length, '0');
}

function malformed(description: string): NoKey {
  return { kind: 'malformed', description };
}
