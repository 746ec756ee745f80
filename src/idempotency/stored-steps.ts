/**
 * How the steps of a half-finished request are stored: JSON rows of kind, name and result, in their order. The first one
 * tells besides which attempt stored it, since only attempts from there on count towards parking (design 3.1). A reader that
 * does not know that field leaves it out, and counts from the first attempt, as does one of a row without it.
 */

/** A step as it is stored. */
export interface StoredStep {
  readonly kind: 'phase' | 'effect';
  readonly name: string;
  /** The encoded result; undefined for an effect that has begun, and of which nothing more is known. */
  readonly result: string | undefined;
}

type Row = readonly [kind: StoredStep['kind'], name: string, result: string | null, startedBy?: number];

/** @param startedBy which attempt stored the first of them, from 1 */
export function writeSteps(steps: readonly StoredStep[], startedBy: number): Buffer {
  const rows = steps.map(({ kind, name, result }, index): Row => {
    const row = [kind, name, result ?? null] as const;
    return index === 0 && startedBy > 1 ? [...row, startedBy] : row;
  });
  return Buffer.from(JSON.stringify(rows));
}

/** Reads what {@link writeSteps} wrote. */
export function readSteps(stored: Uint8Array): readonly StoredStep[] {
  return rowsOf(stored).map(([kind, name, result]) => ({ kind, name, result: result ?? undefined }));
}

/** Which attempt stored the first step; the first one where that is not told, or can't be read. */
export function startedBy(stored: Uint8Array | null | undefined): number {
  if (stored === null || stored === undefined) return 1;
  try {
    const [first] = rowsOf(stored);
    return first?.[3] ?? 1;
  } catch {
    return 1;
  }
}

function rowsOf(stored: Uint8Array): readonly Row[] {
  return JSON.parse(Buffer.from(stored).toString()) as readonly Row[];
}
