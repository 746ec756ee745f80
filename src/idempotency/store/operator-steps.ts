import { derivedKeyOf } from '../derived-request-id';
import type { RecordSubject } from '../record-id';

/** A step of a request, without what it gave: that may hold what a customer wrote. */
export interface RecordedStep {
  readonly kind: 'phase' | 'effect';
  readonly name: string;
  /** False for an effect that has begun, and of which nothing more is known. */
  readonly isDone: boolean;
  /** The key of an effect at the other side, by which it is found there. Undefined for a phase. */
  readonly derivedKey: string | undefined;
}

/**
 * The steps in the stored results of a request, in their order.
 *
 * @param subject undefined where its method is not known; the keys of effects are then left out
 * @returns undefined where they are not of a form that this version knows
 */
export function recordedSteps(
  results: Uint8Array | null,
  subject: RecordSubject | undefined,
): readonly RecordedStep[] | undefined {
  if (results === null) return [];
  const steps: RecordedStep[] = [];
  for (const row of readRows(results)) {
    const [kind, name, result] = Array.isArray(row) ? (row as unknown[]) : [];
    if ((kind !== 'phase' && kind !== 'effect') || typeof name !== 'string') return undefined;
    const derivedKey = kind === 'effect' && subject !== undefined ? derivedKeyOf(subject, name) : undefined;
    steps.push({ kind, name, isDone: result !== null, derivedKey });
  }
  return steps;
}

function readRows(results: Uint8Array): readonly unknown[] {
  try {
    const rows: unknown = JSON.parse(Buffer.from(results).toString());
    return Array.isArray(rows) ? rows : [rows];
  } catch {
    return [undefined];
  }
}
