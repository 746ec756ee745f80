import { createFileRegistry, type DescMessage, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { compileProto } from './compile-proto';

const SOURCE = `
  edition = "2023";
  package t.v1;
  import "idempotency/v1/policy.proto";
  option features.field_presence = IMPLICIT;

  message Everything {
    int64 int64 = 2;
    // Declared after a higher number, as happens.
    int32 int32 = 1;
    uint32 uint32 = 3;
    uint64 uint64 = 4;
    sint32 sint32 = 5;
    sint64 sint64 = 6;
    bool bool = 7;
    fixed32 fixed32 = 8;
    fixed64 fixed64 = 9;
    sfixed32 sfixed32 = 10;
    sfixed64 sfixed64 = 11;
    float float = 12;
    double double = 13;
    string string = 14;
    bytes bytes = 15;
    Open open = 16;
    string maybe_string = 17 [features.field_presence = EXPLICIT];
    int32 maybe_int32 = 18 [features.field_presence = EXPLICIT];
    Everything child = 19;
    repeated int32 numbers = 20;
    repeated string words = 21;
    repeated Everything children = 22;
    repeated double doubles = 23 [features.repeated_field_encoding = EXPANDED];
    map<string, string> by_word = 24;
    map<int64, Everything> by_number = 25;
    map<bool, Open> by_bool = 26;
    oneof choice {
      string chosen_string = 27;
      int32 chosen_int32 = 28;
      Everything chosen_child = 29;
      string chosen_nonce = 30 [(idempotency.v1.not_in_fingerprint) = true];
      Closed chosen_closed = 39;
    }
    Everything group = 31 [features.message_encoding = DELIMITED];
    repeated Everything groups = 32 [features.message_encoding = DELIMITED];
    string nonce = 33 [(idempotency.v1.not_in_fingerprint) = true];
    Closed closed = 34 [features.field_presence = EXPLICIT];
    repeated Closed closeds = 35;
    map<string, Closed> by_closed = 36;
    map<fixed64, float> by_fixed = 37;
    map<fixed32, double> by_short = 38;
  }
  enum Open {
    OPEN_UNSPECIFIED = 0;
    OPEN_ONE = 1;
  }
  enum Closed {
    option features.enum_type = CLOSED;
    CLOSED_TWO = 2;
    CLOSED_ONE = 1;
  }`;

/** Compiles `t.v1.Everything`: a message with a field of every kind, which also contains itself in every way. */
export function compileEverything(): DescMessage {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, compileProto(SOURCE)));
  const message = registry.getMessage('t.v1.Everything');
  if (message === undefined) throw new Error('t.v1.Everything is missing');
  return message;
}
