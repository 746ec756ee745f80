import { Metadata } from '@grpc/grpc-js';
import { RecordedTrailers } from '../../gen/proto/idempotency/v1/record';

/** What no text column of Postgres can hold. */
const NUL = '\0';

/**
 * Serializes the trailers of an answer, and its text where a text column can't hold it; undefined where there is nothing
 * to keep.
 */
export function recordTrailers(metadata: Metadata, text: string): Buffer | undefined {
  const trailers = Object.keys(metadata.getMap()).flatMap((name) =>
    metadata.get(name).map((value) => ({ name, value: Buffer.from(value) })),
  );
  const message = text.includes(NUL) ? text : undefined;
  if (trailers.length === 0 && message === undefined) return undefined;
  return Buffer.from(RecordedTrailers.encode({ trailers, message }).finish());
}

/** The text as a column holds it: exact, but for what it can't hold. */
export function columnText(text: string): string {
  return text.replaceAll(NUL, '\uFFFD');
}

/** Reads what {@link recordTrailers} wrote; `text` stands where nothing else was kept. */
export function readTrailers(
  recorded: Uint8Array | undefined,
  text: string,
): { readonly metadata: Metadata; readonly text: string } {
  const metadata = new Metadata();
  if (recorded === undefined) return { metadata, text };
  const { trailers, message } = RecordedTrailers.decode(recorded);
  for (const { name, value } of trailers) {
    metadata.add(name, name.endsWith('-bin') ? Buffer.from(value) : Buffer.from(value).toString());
  }
  return { metadata, text: message ?? text };
}
