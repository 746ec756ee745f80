import type { Metadata } from '@grpc/grpc-js';
import type { Rejection } from '../errors';
import type { Attempt } from './attempt';

/** A handler: answers with a message, or with what `complete` returned, or throws. */
export type Handler<Tx, Request, Response> = (
  request: Request,
  attempt: Attempt<Tx, Response>,
) => Promise<Response | Rejection>;

/** Whose replay is rebuilt. */
export interface RebuildContext {
  /** The account of the caller. */
  readonly scope: string;
  /** Request metadata of the retry, to read. */
  readonly metadata: Metadata;
}

/**
 * Makes the answer of a replay anew from the resource that was recorded, for `recording: COMPACT`. It may show a newer
 * state than the first caller saw, and must have no effects.
 */
export type Rebuild<Response> = (resource: string, context: RebuildContext) => Promise<Response>;

/** A handler of a method whose answers are rebuilt for every replay. */
export interface RebuildingHandler<Tx, Request, Response> {
  readonly handle: Handler<Tx, Request, Response>;
  readonly rebuild: Rebuild<Response>;
}

/** What is registered for a method. */
export type MethodHandler<Tx, Request, Response> =
  Handler<Tx, Request, Response> | RebuildingHandler<Tx, Request, Response>;

/** Both forms as one. */
export function handlerParts<Tx, Request, Response>(
  handler: MethodHandler<Tx, Request, Response>,
): { readonly handle: Handler<Tx, Request, Response>; readonly rebuild: Rebuild<Response> | undefined } {
  return typeof handler === 'function' ? { handle: handler, rebuild: undefined } : handler;
}
