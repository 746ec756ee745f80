import {
  Enforcement as ProtoEnforcement,
  KeyFormat as ProtoKeyFormat,
  KeyRequirement as ProtoKey,
  type Policy,
  Recording as ProtoRecording,
} from '../../gen/proto/idempotency/v1/policy';
import type { Enforcement, KeyFormat, KeyRequirement, Recording } from '../policy';
import type { RefuseSetting } from './policy-settings';

/** Whether the option asks for a key; undefined where it leaves that to the level. */
export function askedKey({ key }: Policy, refuse: RefuseSetting): KeyRequirement | undefined {
  switch (key) {
    case ProtoKey.KEY_REQUIREMENT_UNSPECIFIED:
      return undefined;
    case ProtoKey.KEY_REQUIREMENT_REQUIRED:
      return 'REQUIRED';
    case ProtoKey.KEY_REQUIREMENT_OPTIONAL:
      return 'OPTIONAL';
    case ProtoKey.KEY_REQUIREMENT_IGNORED:
      return 'IGNORED';
    case ProtoKey.UNRECOGNIZED:
    default:
      refuse('key', unknownValue(key));
      return undefined;
  }
}

/** What a key must look like. Default UUID. */
export function keyFormat({ keyFormat: format }: Policy, refuse: RefuseSetting): KeyFormat {
  switch (format) {
    case ProtoKeyFormat.KEY_FORMAT_UNSPECIFIED:
    case ProtoKeyFormat.KEY_FORMAT_UUID:
      return 'UUID';
    case ProtoKeyFormat.KEY_FORMAT_UUID_V7:
      return 'UUID_V7';
    case ProtoKeyFormat.KEY_FORMAT_OPAQUE:
      return 'OPAQUE';
    case ProtoKeyFormat.UNRECOGNIZED:
    default:
      refuse('key_format', unknownValue(format));
      return 'UUID';
  }
}

/** What is recorded of an answer. Default FULL. */
export function recording({ recording: mode }: Policy, refuse: RefuseSetting): Recording {
  switch (mode) {
    case ProtoRecording.RECORDING_UNSPECIFIED:
    case ProtoRecording.RECORDING_FULL:
      return 'FULL';
    case ProtoRecording.RECORDING_COMPACT:
      return 'COMPACT';
    case ProtoRecording.UNRECOGNIZED:
    default:
      refuse('recording', unknownValue(mode));
      return 'FULL';
  }
}

/** Whether calls that break the key rules are refused. Default ENFORCE. */
export function enforcement({ enforcement: mode }: Policy, refuse: RefuseSetting): Enforcement {
  switch (mode) {
    case ProtoEnforcement.ENFORCEMENT_UNSPECIFIED:
    case ProtoEnforcement.ENFORCEMENT_ENFORCE:
      return 'ENFORCE';
    case ProtoEnforcement.ENFORCEMENT_OBSERVE:
      return 'OBSERVE';
    case ProtoEnforcement.UNRECOGNIZED:
    default:
      refuse('enforcement', unknownValue(mode));
      return 'ENFORCE';
  }
}

function unknownValue(value: number): string {
  return `a value that this version knows; got ${value}`;
}
