import { Metadata } from '@grpc/grpc-js';
import { RecordedTrailers } from '../../gen/proto/idempotency/v1/record';

/** Serializes the trailers of an answer; undefined where there are none. */
export function recordTrailers(metadata: Metadata): Buffer | undefined {
  const trailers = Object.keys(metadata.getMap()).flatMap((name) =>
    metadata.get(name).map((value) => ({ name, value: Buffer.from(value) })),
  );
  if (trailers.length === 0) return undefined;
  return Buffer.from(RecordedTrailers.encode({ trailers }).finish());
}

/** Reads what {@link recordTrailers} wrote. */
export function readTrailers(recorded: Uint8Array | undefined): Metadata {
  const metadata = new Metadata();
  if (recorded === undefined) return metadata;
  for (const { name, value } of RecordedTrailers.decode(recorded).trailers) {
    metadata.add(name, name.endsWith('-bin') ? Buffer.from(value) : Buffer.from(value).toString());
  }
  return metadata;
}
