/** The words of every refusal: what happened, and what to do. Never the key, never anything internal. */

import { status } from '@grpc/grpc-js';
import { ERROR_DOMAIN, type Refusal, StatusError } from '../errors';

/** How soon a caller whose attempt lost its claim is asked to come back. */
const CLAIM_LOST_RETRY_MS = 500;
/** How soon a caller is asked to come back when the store could not be reached. */
const UNAVAILABLE_RETRY_MS = 1_000;

/** @param name metadata name of the key */
export function missingKey(name: string, path: string): Refusal {
  return {
    reason: 'REQUEST_ID_MISSING',
    message: `${path} needs metadata '${name}': make one UUID per intent and send it on every attempt`,
    violations: [{ field: name, description: 'expected one UUID' }],
  };
}

/** @param name metadata name of the key */
export function malformedKey(name: string, description: string): Refusal {
  return {
    reason: 'REQUEST_ID_MALFORMED',
    message: `metadata '${name}' is not a usable key: ${description}`,
    violations: [{ field: name, description }],
  };
}

/** @param name metadata name of the key */
export function keylessRetry(name: string, path: string): Refusal {
  return {
    reason: 'KEYLESS_RETRY',
    message: `${path} was resent without a usable key in metadata '${name}' and might run twice: send a key, or switch these retries off`,
  };
}

/** As {@link keylessRetry}, of a method whose policy ignores keys. */
export function ignoredKeyRetry(path: string): Refusal {
  return {
    reason: 'KEYLESS_RETRY',
    message: `${path} takes no key, was resent and might run twice: switch these retries off, or let its policy take keys`,
  };
}

/**
 * No refusal of keys: the decoder of the service may take it for a message, but it is more than may be compared with
 * another one. Nothing is recorded.
 */
export function unreadable(): StatusError {
  return new StatusError(
    status.INVALID_ARGUMENT,
    'the request is nested too deeply, holds too many fields, or is not a message of its type, and nothing was done: ' +
      'send it in smaller parts, or encoded as its type says',
    [],
    { reason: 'REQUEST_UNREADABLE', domain: ERROR_DOMAIN },
    'never',
  );
}

/** The key's date lies ahead of the database clock. */
export function fromFuture(): Refusal {
  return {
    reason: 'REQUEST_ID_FROM_FUTURE',
    message: "the key is a UUIDv7 dated more than 5 minutes ahead: correct the client's clock and make a new key",
  };
}

/** The key is too old to be run for the first time, or its record is gone. */
export function expired(): Refusal {
  return {
    reason: 'REQUEST_ID_EXPIRED',
    message: 'the key is too old to be run: find out what became of its intent before you make a new key for it',
  };
}

/** The key was used for another request. */
export function mismatch(): Refusal {
  return {
    reason: 'REQUEST_ID_REUSED',
    message: 'the key was already used for a request with other content: send the same content, or a new key',
  };
}

/** An attempt is still running, or an outage has ended one and the next has to wait. */
export function inProgress(retryAfterMs: number, resource: string | undefined): Refusal {
  return {
    reason: 'REQUEST_IN_PROGRESS',
    message: 'an attempt with this key is running, or waits to be resumed: retry with the same key for its answer',
    retryAfterMs,
    ...(resource === undefined ? {} : { resource }),
  };
}

/** The request was carried out, and its answer was too large to be kept. */
export function responseNotRecorded(resource: string | undefined): Refusal {
  return {
    reason: 'RESPONSE_NOT_RECORDED',
    message:
      'this request was carried out and its answer was too large to be kept: do not send it again, read what it made',
    ...(resource === undefined ? {} : { resource }),
  };
}

/**
 * The claim of this attempt went to another one after its lease, was given up at a shutdown, or was freed by an operator;
 * no answer is recorded yet. What it completed was rolled back, what it stored in steps is resumed.
 */
export function claimLost(): Refusal {
  return {
    reason: 'CLAIM_LOST',
    message: 'this attempt lost its claim before an answer was recorded: retry with the same key for the answer',
    retryAfterMs: CLAIM_LOST_RETRY_MS,
  };
}

/** Given up after too many attempts. */
export function parked(): Refusal {
  return {
    reason: 'REQUEST_PARKED',
    message: 'this request failed too often and waits for a person: ask the operators of the service',
  };
}

/** Nothing is known, so nothing is run. */
export function storeUnavailable(): Refusal {
  return {
    reason: 'STORE_UNAVAILABLE',
    message: 'the record of keys could not be read or written: retry with the same key',
    retryAfterMs: UNAVAILABLE_RETRY_MS,
  };
}

/**
 * As {@link storeUnavailable}, for a call without a claim of a method that may not run twice: only its caller can find out
 * whether it did run, and nothing would stop it from running again.
 */
export function unclaimedOutcomeUnknown(): Refusal {
  return {
    reason: 'STORE_UNAVAILABLE',
    message:
      'the database failed during a call without a key, which might run twice if it were resent: ' +
      'find out what became of it, and send a key next time',
  };
}

/** This process runs as many attempts as it may, and nothing was looked up. */
export function tooManyAttempts(): Refusal {
  return {
    reason: 'STORE_UNAVAILABLE',
    message: 'this process runs as many attempts as it may: retry with the same key',
    retryAfterMs: UNAVAILABLE_RETRY_MS,
  };
}

/** Nobody is told, but the log: its caller stopped waiting before a handler was started. */
export function callerGone(): StatusError {
  return new StatusError(status.CANCELLED, 'the caller has stopped waiting');
}

/** Nobody knows whose call it is. */
export function principalMissing(): Refusal {
  return { reason: 'PRINCIPAL_MISSING', message: 'the caller could not be identified: send valid credentials' };
}
