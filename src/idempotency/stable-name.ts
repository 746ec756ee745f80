/** Without letters that look alike and have several spellings in bytes. */
const STABLE_NAME = /^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$/;

/** What `isStableName` asks for, for error texts. */
export const STABLE_NAME_EXPECTED =
  '1 to 128 characters of A-Z a-z 0-9 _ . : / -, the first of them a letter or a digit';

/**
 * Whether a value can name something for ever: an effect, an intent, whoever makes intents. Keys are made from such
 * names or found by them, also by the next version and by programs in other languages.
 */
export function isStableName(value: unknown): value is string {
  return typeof value === 'string' && STABLE_NAME.test(value);
}
