import type { Timestamp } from './gen/proto/google/protobuf/timestamp';

/** A time as google.protobuf.Timestamp. */
export function timestamp(date: Date): Timestamp {
  const ms = date.getTime();
  const seconds = Math.floor(ms / 1_000);
  return { seconds: BigInt(seconds), nanos: (ms - seconds * 1_000) * 1_000_000 };
}
