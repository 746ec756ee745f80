/** Whether one version, such as `1.10.0`, is another or comes after it. What follows the three numbers does not count. */
export function isAtLeast(version: string, least: string): boolean {
  const own = numbers(version);
  const other = numbers(least);
  const difference = own.map((number, index) => number - (other[index] ?? 0)).find((candidate) => candidate !== 0);
  return (difference ?? 0) >= 0;
}

function numbers(version: string): readonly number[] {
  const match = /^(\d+)\.(\d+)\.(\d+)/.exec(version);
  if (match === null) throw new Error(`"${version}" is no version`);
  return match.slice(1).map(Number);
}
