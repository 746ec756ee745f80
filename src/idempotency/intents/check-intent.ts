import { parseKey } from '../key';
import { isStableName, STABLE_NAME_EXPECTED } from '../stable-name';

/**
 * Checks what the key of an intent is found by.
 *
 * @throws TypeError that says what was expected
 */
export function checkSubject(intent: string, draftId: string): void {
  if (!isStableName(intent)) throw new TypeError(`intent: expected ${STABLE_NAME_EXPECTED}`);
  if (typeof draftId !== 'string' || !isDraftId(draftId)) {
    throw new TypeError('draftId: expected a text of 1 to 255 characters, well-formed and without U+0000');
  }
}

/**
 * Checks a key that a caller hands back.
 *
 * @throws TypeError that doesn't repeat it
 */
export function checkKey(requestId: string): void {
  if (typeof requestId !== 'string' || parseKey([requestId], 'UUID').kind !== 'key') {
    throw new TypeError('requestId: expected the key of the intent');
  }
}

/** A lone surrogate would be stored as U+FFFD: two drafts would share a key. Postgres stores no U+0000. */
function isDraftId(text: string): boolean {
  return text.length >= 1 && text.length <= 255 && text.isWellFormed() && !text.includes('\u0000');
}
