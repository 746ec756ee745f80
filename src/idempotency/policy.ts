import type { DescMessage } from '@bufbuild/protobuf';

/** The proto `idempotency_level` of a method; UNKNOWN is what a method without the option has. */
export type Level = 'NO_SIDE_EFFECTS' | 'IDEMPOTENT' | 'UNKNOWN';

/** Whether a call must carry a key. */
export type KeyRequirement = 'REQUIRED' | 'OPTIONAL' | 'IGNORED';

/** What a key must look like. */
export type KeyFormat = 'UUID' | 'UUID_V7' | 'OPAQUE';

/** What is recorded of an answer. */
export type Recording = 'FULL' | 'COMPACT';

/** Whether calls that break the key rules are refused or only counted. */
export type Enforcement = 'ENFORCE' | 'OBSERVE';

/** The rules that govern one method: its level and its option `(idempotency.v1.policy)`, with the defaults filled in. */
export interface MethodPolicy {
  /** As on the wire: `/payments.v1.PaymentsService/CreatePayment`. */
  readonly path: string;
  /** `payments.v1.PaymentsService` */
  readonly service: string;
  /** `CreatePayment` */
  readonly method: string;
  readonly level: Level;
  readonly key: KeyRequirement;
  readonly keyFormat: KeyFormat;
  /** How long an attempt owns its claim without renewing it. */
  readonly leaseMs: number;
  /** How long one attempt may renew its lease. */
  readonly maxExecutionMs: number;
  /** How long after its date a UUIDv7 may be used for the first time. */
  readonly maxKeyAgeMs: number;
  /** How long a record is kept after its claim. */
  readonly retentionMs: number;
  /** How long a duplicate waits for the running attempt. */
  readonly maxWaitMs: number;
  /** The largest answer that is recorded. */
  readonly maxResponseBytes: number;
  readonly recording: Recording;
  readonly enforcement: Enforcement;
  readonly resume: boolean;
  readonly allowDetached: boolean;
  readonly unprotectedStream: boolean;
  readonly clientStreaming: boolean;
  readonly serverStreaming: boolean;
  /** Drives the canonical form of the fingerprint. */
  readonly request: DescMessage;
  /**
   * Whether `request` is the type of the request; false where the policies come from a definition that doesn't hold it,
   * and `request` is then a message without fields. Enough for clients; a server refuses to serve such a method under
   * keys.
   */
  readonly requestKnown: boolean;
}

/** The policies of all methods of a descriptor set or of definitions, by path. */
export interface PolicyRegistry {
  /** The policy of `/package.Service/Method`, or undefined where there is no such method. */
  get(path: string): MethodPolicy | undefined;
  /** Every policy, in the order of their source. */
  all(): readonly MethodPolicy[];
}

/** What a policy says where the proto says nothing (design 3.1). */
export const POLICY_DEFAULTS = {
  leaseMs: 30_000,
  /** In leases. */
  maxExecutionLeases: 10,
  maxKeyAgeMs: 24 * 3_600_000,
  retentionMs: 72 * 3_600_000,
  maxWaitMs: 0,
  maxResponseBytes: 256 * 1024,
} as const;
