/**
 * What the library tells those who watch it. It knows nothing of metrics or logs; they listen here.
 *
 * A listener is called synchronously on the call path: it must be quick and must not throw.
 */

import type { StatusError } from './errors';
import type { RecordState } from './store/store';

/**
 * How a call was received (design 3.4). Rarely, `malformed_key` is a request that can't be compared with another one;
 * `principal_missing` a `principal` that failed, or gave no answer while its caller waited; `store_unavailable` a process
 * that runs as many attempts as it may, or a fault of ours before the key was claimed.
 */
export const ADMISSION_OUTCOMES = [
  'claimed',
  'replayed',
  'in_progress',
  'mismatch',
  'missing_key',
  'malformed_key',
  'future_key',
  'expired_key',
  'parked',
  'keyless_retry',
  'unprotected',
  'principal_missing',
  'store_unavailable',
] as const;

/** How a call was received. */
export type AdmissionOutcome = (typeof ADMISSION_OUTCOMES)[number];

/** What a handler said about its work, for the log line: order id, payment id, state. Never a body or card data. */
export type PublishedFields = Readonly<Record<string, string>>;

/** The key of the request that an event is about, where it is about one: by it a log is searched. */
interface AboutRequest {
  readonly requestId?: string | undefined;
}

/** What the log says of an attempt that failed. */
interface WhyFailed {
  /**
   * `ErrorInfo.reason` of a refusal, of the error that the handler answered with, or of a recorded rejection;
   * `REQUEST_UNREADABLE` where a request could not be compared.
   */
  readonly reason?: string;
  /**
   * What the handler threw to answer with; undefined where it threw nothing, or something that is told as a fault. Its
   * `cause` stays on this side of the wire.
   */
  readonly error?: StatusError;
}

/** Something that happened on the server. `path` is the method as on the wire. Durations are in milliseconds. */
export type ServerEvent =
  /** Once per call of a method that takes keys, and of one that ignores them where a resent call was refused. */
  | {
      readonly type: 'admitted';
      readonly path: string;
      readonly outcome: AdmissionOutcome;
      /** Which of `clientVersions` sent it, or `other`; only with outcome `mismatch`. */
      readonly clientVersion?: string;
      /** gRPC code of the recorded answer, only with outcome `replayed`. */
      readonly recordedCode?: number;
      /** The policy only observes: what the outcome names was let through, unprotected. */
      readonly observed?: true;
      /** How long ago a dated key says it was made, by the clock of this process; never negative. */
      readonly keyAgeMs?: number;
    }
  /**
   * Several new keys came for one content within seconds: it seems that a client makes a new key for every attempt, which
   * protects nothing. Told once per content and half a minute.
   */
  | { readonly type: 'regenerated_key_suspect'; readonly path: string }
  /** A claim was asked for and answered, whatever the answer. */
  | { readonly type: 'claim'; readonly path: string; readonly durationMs: number }
  /** A handler ran to its end as the owner of a claim. */
  | { readonly type: 'execution'; readonly path: string; readonly durationMs: number; readonly leaseMs: number }
  /** An answer was recorded. */
  | { readonly type: 'recorded'; readonly path: string; readonly responseBytes: number }
  /** An answer was given and not recorded, since it is larger than the policy allows: retries are refused. */
  | (AboutRequest & {
      readonly type: 'too_large';
      readonly path: string;
      readonly responseBytes: number;
      readonly limit: number;
    })
  /** A lease was to be prolonged. `failed`: the store could not be reached; `busy`: somebody had the row in hand. */
  | {
      readonly type: 'renewal';
      readonly path: string;
      readonly result: 'renewed' | 'lost' | 'busy' | 'failed';
    }
  /** An attempt runs longer than `max_execution`; its lease is not prolonged any more. */
  | (AboutRequest & { readonly type: 'execution_limit'; readonly path: string })
  /** A half-finished request was tried too often and waits for a person. */
  | (AboutRequest & { readonly type: 'parked'; readonly path: string })
  /**
   * A lease was ended early: at shutdown, or by an attempt that ended half-way. The key is not free; the next attempt need
   * not wait, or after an outage has to, `pausedMs`.
   */
  | (AboutRequest & { readonly type: 'lease_ended'; readonly path: string; readonly pausedMs?: number })
  /** The outcome of a commit was unknown, and was found out, or was not. */
  | (AboutRequest & {
      readonly type: 'settled';
      readonly path: string;
      readonly result: 'committed' | 'never_committed' | 'lost' | 'unsettled';
    })
  /** A claim whose lease was over went to this process. */
  | { readonly type: 'takeover'; readonly path: string }
  /**
   * A half-finished request that nobody came back for was resumed in the background. `overtaken`: another attempt got ahead,
   * such as its caller's retry.
   */
  | (WhyFailed & {
      readonly type: 'resumed';
      readonly path: string;
      readonly requestId: string;
      readonly scope: string;
      readonly result: 'completed' | 'failed' | 'overtaken';
      /** gRPC code of what a caller would have been answered. */
      readonly code: number;
      /** Which execution of the key this was. */
      readonly attempt: number;
      readonly durationMs: number;
      readonly published: PublishedFields;
    })
  /** So many half-finished requests wait for a handler that no process has any more. Told when the number changes. */
  | { readonly type: 'stranded'; readonly path: string; readonly records: number }
  /** An attempt ended whose claim had gone to somebody else: of what it did, only phases stored before stay. Once per attempt. */
  | { readonly type: 'fenced'; readonly path: string }
  /** A claim was given up, so that the key is free again. */
  | { readonly type: 'released'; readonly path: string }
  /** The one line per keyed call (design 3.5). */
  | (WhyFailed & {
      readonly type: 'call';
      readonly path: string;
      readonly requestId: string | undefined;
      readonly scope: string | undefined;
      readonly outcome: AdmissionOutcome;
      /** gRPC code of the answer. */
      readonly code: number;
      /** Which execution of the key this was, from 1; undefined where nothing ran. */
      readonly attempt?: number;
      readonly durationMs: number;
      /** What the handler published, and the `resource` of a record that it did not run for. */
      readonly published: PublishedFields;
      /** Where the record of its key stood when the call ended; undefined where there is none, or it is not known. */
      readonly recordState?: RecordState;
      /** The answer is a recorded rejection: the handler has refused the request for good, now or before. */
      readonly rejected?: true;
      /** As in `admitted`. */
      readonly observed?: true;
    })
  /** Something broke whose cause the caller is not told. */
  | (AboutRequest & {
      readonly type: 'fault';
      readonly path: string;
      readonly what: string;
      readonly error: unknown;
    });

/** Listens to a server. */
export type ServerEventListener = (event: ServerEvent) => void;

/** What may have another attempt follow: a gRPC code, or a refusal of this package that ends by itself. */
export const RETRY_REASONS = [
  'UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'RESOURCE_EXHAUSTED',
  'ABORTED',
  'CANCELLED',
  'INTERNAL',
  'UNKNOWN',
  'REQUEST_IN_PROGRESS',
  'CLAIM_LOST',
] as const;

/** What may have another attempt follow. */
export type RetryReason = (typeof RETRY_REASONS)[number];

/**
 * Why no other attempt follows although one might have helped.
 *
 * - `no_request_id`: a second arrival is not safe: unknown level, no usable key
 * - `attempts`, `deadline`: the call has no more of them
 * - `budget`: the target gets no more retries for now
 * - `pushback`: the server asked for none
 * - `unreadable`: the server sent error details that can't be read
 * - `key_expired`: the key may not be sent any more
 * - `channel`: it could not be started, as on a closed channel
 */
export const STOP_REASONS = [
  'no_request_id',
  'attempts',
  'budget',
  'pushback',
  'unreadable',
  'deadline',
  'key_expired',
  'channel',
] as const;

/** Why no other attempt follows although one might have helped. */
export type StopReason = (typeof STOP_REASONS)[number];

/** Something that happened on a client. `path` is the method as on the wire. */
export type ClientEvent =
  /** A call ended; `attempts` counts those that were sent. */
  | { readonly type: 'call'; readonly path: string; readonly attempts: number; readonly code: number }
  /** Another attempt follows. */
  | { readonly type: 'retry'; readonly path: string; readonly reason: RetryReason; readonly delayMs: number }
  /** A retry that would have helped was not allowed. */
  | { readonly type: 'retry_refused'; readonly path: string; readonly reason: StopReason }
  /** What the retry budget of a target holds: told at the start and after every change. */
  | { readonly type: 'retry_budget'; readonly target: string; readonly tokens: number }
  /** The channel was told to retry by itself, which would multiply with the retries here: told once per client. */
  | {
      readonly type: 'native_retries';
      /** Whether they were switched off; else they multiply. */
      readonly switchedOff: boolean;
      /** For people: what was found, and the remedy. */
      readonly message: string;
    };

/** Listens to a client. */
export type ClientEventListener = (event: ClientEvent) => void;
