import type { Metadata } from '@grpc/grpc-js';
import type { ClaimRequest, HeldClaim, NotKeptOutcome } from '../store/store';
import type { CallReport } from './call-report';

/** A claim in the hands of a call, and what it was made for. */
export interface Claimed {
  readonly request: ClaimRequest;
  readonly claim: HeldClaim;
  /** When it was asked for, by `performance.now()`. */
  readonly askedAtMs: number;
}

/** What the interceptor tells the handler's adapter about a call that it lets through. */
export interface CallContext {
  readonly scope: string;
  readonly requestId: string | undefined;
  /** Undefined for a call that runs unclaimed. */
  readonly claimed: Claimed | undefined;
  /** The answer to make anew instead of running the handler. */
  readonly rebuild: NotKeptOutcome | undefined;
  readonly report: CallReport;
  /** Set by the adapter as soon as the handler starts: from then on the claim is the adapter's to complete or release. */
  started: boolean;
}

/**
 * Hands the context of a call from the interceptor to the adapter. The metadata object is what both see and no other call
 * has; looking it up is cheaper than an AsyncLocalStorage, which costs every call.
 */
export type CallContexts = WeakMap<Metadata, CallContext>;
