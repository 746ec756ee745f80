import { Metadata, type StatusObject, status } from '@grpc/grpc-js';
import type { Refusal, StatusError } from '../errors';
import type { RecordedAnswer, RecordState } from '../store/store';
import { EXPIRES_AT, REPLAYED } from '../wire/metadata';
import { readErrorDetails, refusalStatus, statusErrorStatus } from '../wire/error-details';
import { readTrailers } from '../wire/recorded-trailers';

/** By the definition of google.rpc.ErrorInfo, characters. */
const LONGEST_REASON = 63;

/** Where a record stands, and what it is about; for the log. */
export interface RecordSeen {
  readonly state: RecordState;
  /** Undefined where it is not known. */
  readonly resource?: string | undefined;
}

/** What the caller is told; `record` is where that of its key stands by then, as far as is known. */
export type Reply = Told & { readonly record?: RecordSeen | undefined };

type Told =
  | {
      readonly kind: 'answer';
      readonly answer: RecordedAnswer;
      readonly replayed: boolean;
      readonly expiresAt?: Date;
      /** For the log: why the answer is another attempt's. */
      readonly reason?: 'CLAIM_LOST';
    }
  /** `replayed` where it says of a recorded answer that it was not kept. */
  | { readonly kind: 'refuse'; readonly refusal: Refusal; readonly replayed?: boolean; readonly expiresAt?: Date }
  /**
   * The handler said so on purpose; `replayed` where it said so in place of a recorded answer, `retryAfterMs` where the
   * next attempt has to wait.
   */
  | {
      readonly kind: 'status';
      readonly error: StatusError;
      readonly replayed?: boolean;
      readonly expiresAt?: Date;
      readonly retryAfterMs?: number;
    }
  /** Something broke; the caller gets a fixed text. */
  | { readonly kind: 'fault' };

/** A reply as it goes to the wire: a message only with status OK. */
export interface WireReply {
  readonly status: StatusObject;
  readonly response: Buffer | undefined;
  /** `ErrorInfo.reason` of a refusal, of the handler's own error, or of a recorded rejection, for the log. */
  readonly reason: string | undefined;
  /** It is a recorded rejection: what the handler has refused for good, now or before. */
  readonly rejected?: true;
  /** The handler's own error, for the log. */
  readonly error?: StatusError;
  /** For the log too. */
  readonly record?: RecordSeen | undefined;
}

/**
 * Tells a caller who is to come again how long the next attempt has to wait.
 *
 * @param retryAfterMs milliseconds
 */
export function withPause(reply: Reply, retryAfterMs: number): Reply {
  if (reply.kind === 'status') return { ...reply, retryAfterMs };
  if (reply.kind === 'refuse') return { ...reply, refusal: { ...reply.refusal, retryAfterMs } };
  return reply;
}

/** Translates a reply. All marks are trailers, so that an error stays Trailers-Only (design 3.3). */
export function wireReply(reply: Reply): WireReply {
  const { record } = reply;
  switch (reply.kind) {
    case 'answer': {
      const { code, message, response, trailers } = reply.answer;
      const { metadata, text } = readTrailers(trailers, message);
      mark(metadata, reply);
      const wire = { status: { code, details: text, metadata }, response, record };
      if (reply.reason !== undefined || code === (status.OK as number)) return { ...wire, reason: reply.reason };
      return { ...wire, reason: bounded(readErrorDetails(metadata).reason), rejected: true };
    }
    case 'refuse': {
      const status = refusalStatus(reply.refusal);
      mark(status.metadata, reply);
      return { status, response: undefined, reason: reply.refusal.reason, record };
    }
    case 'status': {
      const status = statusErrorStatus(reply.error, reply.retryAfterMs);
      mark(status.metadata, reply);
      const reason = bounded(reply.error.info?.reason);
      return { status, response: undefined, reason, error: reply.error, record };
    }
    case 'fault':
      return {
        status: { code: status.INTERNAL, details: 'internal error', metadata: new Metadata() },
        response: undefined,
        reason: undefined,
        record,
      };
  }
}

/** What a service puts into a reason is its own; the log has no more of it than a reason may be long. */
function bounded(reason: string | undefined): string | undefined {
  return reason?.slice(0, LONGEST_REASON);
}

function mark(metadata: Metadata, { replayed, expiresAt }: { readonly replayed?: boolean; readonly expiresAt?: Date }) {
  if (replayed === true) metadata.set(REPLAYED, 'true');
  if (expiresAt !== undefined) metadata.set(EXPIRES_AT, expiresAt.toISOString());
}
