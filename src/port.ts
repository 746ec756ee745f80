const LARGEST = 65_535;

/** What Kubernetes sets as `<NAME>_PORT` for every Service of a namespace, whoever reads a variable of that name. */
const SERVICE_LINK = /^(tcp|udp|sctp):\/\//;

/** Reads the number of a port, 0 included, which takes any free one; undefined where the text is none. */
export function readPort(text: string): number | undefined {
  const port = /^\d+$/.test(text) ? Number(text) : NaN;
  return port <= LARGEST ? port : undefined;
}

/** What is expected in place of a text that `readPort` could not read, and where such a text may come from. */
export function portExpected(text: string): string {
  const expected = `a whole number from 0 to ${LARGEST}`;
  if (!SERVICE_LINK.test(text)) return expected;
  return (
    `${expected} (Kubernetes sets such a variable for every Service of that name: set enableServiceLinks: false in the ` +
    'pod, or this variable in the container)'
  );
}
