/** An object of a file that others wrote, with whatever they wrote in it. */
export type Plain = Readonly<Record<string, unknown>>;

/** Whether a parsed value is an object and no list. */
export function isObject(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The elements of a list; none where the value is none. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
