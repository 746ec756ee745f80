import { hash } from 'node:crypto';
import type { RequestKey } from './key';
import { lengthPrefixed } from './length-prefixed';

/** What a record is about: one key of one account for one method. */
export interface RecordSubject {
  /** Whose key it is. */
  readonly scope: string;
  /** The method as on the wire: `/package.Service/Method`. */
  readonly path: string;
  readonly key: RequestKey;
}

/** Hex digits of the 48 bits that come from the key alone. */
const KEY_DIGITS = 12;
/** Hex digits of the 80 bits that come from all three. */
const SUBJECT_DIGITS = 20;

/**
 * The id of a record, as UUID text: 48 bits from the key alone (the time of a dated key, else a hash of its text), so
 * that time-ordered keys stay together in the index and a key is found by range without knowing its scope; then 80 bits
 * of a hash over scope, path and key (design 4.5). Two subjects may share an id in theory: whoever reads a record compares
 * its scope, method and key.
 *
 * Records are found by it, so for a given subject it may never change.
 */
export function recordId({ scope, path, key }: RecordSubject): string {
  const ofKey = key.dated ? key.dated.atMs.toString(16).padStart(KEY_DIGITS, '0') : hash('sha256', key.text, 'hex');
  const ofSubject = hash('sha256', lengthPrefixed([scope, path, key.text]), 'hex');
  const digits = ofKey.slice(0, KEY_DIGITS) + ofSubject.slice(0, SUBJECT_DIGITS);
  return [digits.slice(0, 8), digits.slice(8, 12), digits.slice(12, 16), digits.slice(16, 20), digits.slice(20)].join(
    '-',
  );
}
