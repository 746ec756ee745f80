/**
 * The bytes of texts, each after its length, for a hash over several: without the lengths, "ab" + "c" and "a" + "bc" would
 * be the same. Records and derived keys are found by such hashes, so this never changes.
 */
export function lengthPrefixed(texts: readonly string[]): Buffer {
  return Buffer.concat(
    texts.flatMap((text) => {
      const bytes = Buffer.from(text, 'utf8');
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      return [length, bytes];
    }),
  );
}
