/** A message of the Postgres protocol, version 3, as it is on the wire. */
export interface Frame {
  /** Its type byte, such as `Q`; empty for the message that opens a connection, which has none. */
  readonly type: string;
  readonly bytes: Buffer;
}

/** Cuts a stream into messages: gives those that a chunk completes, and keeps the rest for the next chunk. */
export function createFrameSplitter({ opens }: { readonly opens: boolean }): (chunk: Buffer) => readonly Frame[] {
  let rest: Buffer = Buffer.alloc(0);
  let opening = opens;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    const frames: Frame[] = [];
    for (;;) {
      const typeBytes = opening ? 0 : 1;
      if (rest.length < typeBytes + 4) return frames;
      const end = typeBytes + rest.readInt32BE(typeBytes);
      if (rest.length < end) return frames;
      frames.push({ type: rest.toString('latin1', 0, typeBytes), bytes: rest.subarray(0, end) });
      rest = rest.subarray(end);
      opening = false;
    }
  };
}

/**
 * Reads the statements of one connection: the text that a message asks to run, whether it comes as a simple query, is
 * prepared, or was prepared earlier; undefined for every other message.
 */
export function createStatementReader(): (frame: Frame) => string | undefined {
  const prepared = new Map<string, string>();
  return ({ type, bytes }) => {
    const [first = '', second = ''] = bytes.toString('utf8', 5).split('\0', 2);
    switch (type) {
      case 'Q':
        return first;
      case 'P':
        prepared.set(first, second);
        return second;
      case 'B':
        return prepared.get(second);
      default:
        return undefined;
    }
  };
}
