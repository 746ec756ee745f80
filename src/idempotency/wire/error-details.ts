import { Metadata, type status } from '@grpc/grpc-js';
import type { Any } from '../../gen/proto/google/protobuf/any';
import { BadRequest, ErrorInfo as ErrorInfoMessage, RetryInfo } from '../../gen/proto/google/rpc/error_details';
import { Status } from '../../gen/proto/google/rpc/status';
import { ERROR_DOMAIN, type ErrorInfo, type FieldViolation, type Refusal, REFUSALS, type StatusError } from '../errors';
import { RETRY_PUSHBACK, STATUS_DETAILS } from './metadata';

const TYPE_PREFIX = 'type.googleapis.com/';

/** What a refusal says of a resource at most. Some clients take 8 KiB of headers, and details grow by a third in them. */
const LONGEST_RESOURCE_BYTES = 4 * 1024;

/** A status as it leaves the server: code, text, and trailers that hold the details. */
export interface WireStatus {
  readonly code: status;
  readonly details: string;
  readonly metadata: Metadata;
}

/** What a client can read of an error's details. Empty where the server sent none. */
export interface ErrorDetails {
  /** `ErrorInfo.reason`. */
  readonly reason?: string;
  /** `ErrorInfo.domain`. */
  readonly domain?: string;
  /** `ErrorInfo.metadata`. */
  readonly metadata: ReadonlyMap<string, string>;
  /** `RetryInfo.retry_delay`, milliseconds. */
  readonly retryDelayMs?: number;
  /** `BadRequest.field_violations`. */
  readonly violations: readonly FieldViolation[];
  /** Whether details came that can't be read. */
  readonly unreadable: boolean;
}

/** Writes a refusal with its ErrorInfo, its RetryInfo or stop sign, and its field violations (design 3.3). */
export function refusalStatus(refusal: Refusal): WireStatus {
  const { code, hint } = REFUSALS[refusal.reason];
  const { reason, resource } = refusal;
  // One that is longer could make the whole refusal too much for any client, and it only says where to look.
  const isTold = resource !== undefined && Buffer.byteLength(resource) <= LONGEST_RESOURCE_BYTES;
  const about = isTold ? { resource } : {};
  const details: Any[] = [errorInfo({ reason, domain: ERROR_DOMAIN, metadata: about })];
  if (refusal.retryAfterMs !== undefined) details.push(retryInfo(refusal.retryAfterMs));
  if (refusal.violations?.length) details.push(badRequest(refusal.violations));
  const metadata = detailsMetadata(code, refusal.message, details);
  const isFinal = hint === 'never' || refusal.retryAfterMs === undefined;
  metadata.set(RETRY_PUSHBACK, isFinal ? '-1' : String(Math.ceil(refusal.retryAfterMs)));
  return { code, details: refusal.message, metadata };
}

/**
 * Writes what a handler threw on purpose, with what it says about a retry.
 *
 * @param pausedMs for how long no next attempt may run; of two waits the longer one is told. Default: for none
 */
export function statusErrorStatus(error: StatusError, pausedMs?: number): WireStatus {
  const { retry } = error;
  const retryAfterMs = retry === 'never' ? undefined : longerOf(retry?.afterMs, pausedMs);
  const details: Any[] = [];
  if (error.info !== undefined) details.push(errorInfo(error.info));
  if (retryAfterMs !== undefined) details.push(retryInfo(retryAfterMs));
  if (error.violations.length > 0) details.push(badRequest(error.violations));
  const metadata = details.length > 0 ? detailsMetadata(error.code, error.details, details) : new Metadata();
  if (retry === 'never') metadata.set(RETRY_PUSHBACK, '-1');
  if (retryAfterMs !== undefined) metadata.set(RETRY_PUSHBACK, String(Math.ceil(retryAfterMs)));
  return { code: error.code, details: error.details, metadata };
}

function longerOf(oneMs: number | undefined, otherMs: number | undefined): number | undefined {
  return oneMs === undefined || otherMs === undefined ? (oneMs ?? otherMs) : Math.max(oneMs, otherMs);
}

/** Reads the details of an error. Of details that can't be read nothing counts: the status itself is the truth. */
export function readErrorDetails(metadata: Metadata): ErrorDetails {
  const none: ErrorDetails = { metadata: new Map(), violations: [], unreadable: false };
  const [bytes] = metadata.get(STATUS_DETAILS);
  if (!Buffer.isBuffer(bytes)) return none;
  try {
    return Status.decode(bytes).details.reduce(withDetail, none);
  } catch {
    return { ...none, unreadable: true };
  }
}

function withDetail(read: ErrorDetails, { typeUrl, value }: Any): ErrorDetails {
  // Whoever packed it may keep the types elsewhere: the name after the last slash says what it is (google.protobuf.Any).
  switch (typeUrl.slice(typeUrl.lastIndexOf('/') + 1)) {
    case 'google.rpc.ErrorInfo': {
      const { reason, domain, metadata } = ErrorInfoMessage.decode(value);
      return { ...read, reason, domain, metadata: new Map(Object.entries(metadata)) };
    }
    case 'google.rpc.RetryInfo': {
      const { retryDelay } = RetryInfo.decode(value);
      if (retryDelay === undefined) return read;
      return { ...read, retryDelayMs: Number(retryDelay.seconds) * 1000 + retryDelay.nanos / 1e6 };
    }
    case 'google.rpc.BadRequest':
      return { ...read, violations: BadRequest.decode(value).fieldViolations };
    default:
      return read;
  }
}

function detailsMetadata(code: status, message: string, details: Any[]): Metadata {
  const metadata = new Metadata();
  metadata.set(STATUS_DETAILS, Buffer.from(Status.encode({ code, message, details }).finish()));
  return metadata;
}

function errorInfo({ reason, domain, metadata = {} }: ErrorInfo): Any {
  const value = ErrorInfoMessage.encode({ reason, domain, metadata: { ...metadata } }).finish();
  return { typeUrl: `${TYPE_PREFIX}google.rpc.ErrorInfo`, value: Buffer.from(value) };
}

function retryInfo(delayMs: number): Any {
  const whole = Math.ceil(delayMs);
  const retryDelay = { seconds: BigInt(Math.floor(whole / 1000)), nanos: (whole % 1000) * 1_000_000 };
  return {
    typeUrl: `${TYPE_PREFIX}google.rpc.RetryInfo`,
    value: Buffer.from(RetryInfo.encode({ retryDelay }).finish()),
  };
}

function badRequest(violations: readonly FieldViolation[]): Any {
  const fieldViolations = violations.map(({ field, description }) => ({ field, description }));
  const value = BadRequest.encode({ fieldViolations }).finish();
  return { typeUrl: `${TYPE_PREFIX}google.rpc.BadRequest`, value: Buffer.from(value) };
}
