/** The words of every refusal: what happened, and what to do. Never the key, never anything internal. */

import type { Refusal } from '../errors';

/** How soon a duplicate of a running call is asked to come back, at the most. */
const IN_PROGRESS_RETRY_MS = 500;
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
    message: `${path} was resent without metadata '${name}' and might run twice: send a key, or switch these retries off`,
  };
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

/** The first attempt is still running. */
export function inProgress(leaseLeftMs: number, resource: string | undefined): Refusal {
  return {
    reason: 'REQUEST_IN_PROGRESS',
    message: 'an attempt with this key is still running: retry with the same key for its answer',
    // No lease left means that somebody has the row in hand just now.
    retryAfterMs: leaseLeftMs > 0 ? Math.min(IN_PROGRESS_RETRY_MS, Math.max(50, leaseLeftMs)) : IN_PROGRESS_RETRY_MS,
    ...(resource === undefined ? {} : { resource }),
  };
}

/** This attempt was overtaken, and the one that did so has not answered yet. */
export function claimLost(): Refusal {
  return {
    reason: 'CLAIM_LOST',
    message: 'this attempt took longer than its lease and changed nothing: retry with the same key for the answer',
    retryAfterMs: IN_PROGRESS_RETRY_MS,
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

/** Nobody knows whose call it is. */
export function principalMissing(): Refusal {
  return { reason: 'PRINCIPAL_MISSING', message: 'the caller could not be identified: send valid credentials' };
}
