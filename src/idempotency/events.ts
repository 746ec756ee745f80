/**
 * What the library tells those who watch it. It knows nothing of metrics or logs; they listen here.
 *
 * A listener is called synchronously on the call path: it must be quick and must not throw.
 */

/** How a call was received (design 3.4). */
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

/** Something that happened on the server. `path` is the method as on the wire. Durations are in milliseconds. */
export type ServerEvent =
  /** Once per call of a method that takes keys. */
  | {
      readonly type: 'admitted';
      readonly path: string;
      readonly outcome: AdmissionOutcome;
      /** gRPC code of the recorded answer, only with outcome `replayed`. */
      readonly recordedCode?: number;
    }
  /** A claim was asked for and answered, whatever the answer. */
  | { readonly type: 'claim'; readonly path: string; readonly durationMs: number }
  /** A handler ran to its end as the owner of a claim. */
  | { readonly type: 'execution'; readonly path: string; readonly durationMs: number }
  /** A claim whose lease was over went to this process. */
  | { readonly type: 'takeover'; readonly path: string }
  /** A write was refused because the claim had gone to somebody else. */
  | { readonly type: 'fenced'; readonly path: string }
  /** A claim was given up, so that the key is free again. */
  | { readonly type: 'released'; readonly path: string }
  /** The one line per keyed call (design 3.5). */
  | {
      readonly type: 'call';
      readonly path: string;
      readonly requestId: string | undefined;
      readonly scope: string | undefined;
      readonly outcome: AdmissionOutcome;
      /** gRPC code of the answer. */
      readonly code: number;
      /** `ErrorInfo.reason` of a refusal. */
      readonly reason?: string;
      /** Which execution of the key this was, from 1; undefined where nothing ran. */
      readonly attempt?: number;
      readonly durationMs: number;
      readonly published: PublishedFields;
    }
  /** Something broke whose cause the caller is not told. */
  | { readonly type: 'fault'; readonly path: string; readonly what: string; readonly error: unknown };

/** Listens to a server. */
export type ServerEventListener = (event: ServerEvent) => void;

/** Why a client sent another attempt, or did not. */
export type ClientEvent =
  /** A call ended; `attempts` counts those that were sent. */
  | { readonly type: 'call'; readonly path: string; readonly attempts: number; readonly code: number }
  /** Another attempt follows; `reason` is a gRPC code name or a reason of this package. */
  | { readonly type: 'retry'; readonly path: string; readonly reason: string; readonly delayMs: number }
  /** A retry that would have helped was not allowed. */
  | { readonly type: 'retry_refused'; readonly path: string; readonly reason: string };

/** Listens to a client. */
export type ClientEventListener = (event: ClientEvent) => void;
