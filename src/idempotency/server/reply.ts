import { Metadata, type StatusObject, status } from '@grpc/grpc-js';
import { EXPIRES_AT, REPLAYED } from '../wire/metadata';
import { refusalStatus, statusErrorStatus } from '../wire/error-details';
import { readTrailers } from '../wire/recorded-trailers';
import type { Reply } from './run-once';

/** A reply as it goes to the wire: a message only with status OK. */
export interface WireReply {
  readonly status: StatusObject;
  readonly response: Buffer | undefined;
  /** `ErrorInfo.reason` of a refusal, for the log. */
  readonly reason: string | undefined;
}

/** Translates a reply. All marks are trailers, so that an error stays Trailers-Only (design 3.3). */
export function wireReply(reply: Reply): WireReply {
  switch (reply.kind) {
    case 'answer': {
      const { code, message, response, trailers } = reply.answer;
      const metadata = readTrailers(trailers);
      if (reply.replayed) metadata.set(REPLAYED, 'true');
      if (reply.expiresAt !== undefined) metadata.set(EXPIRES_AT, reply.expiresAt.toISOString());
      return { status: { code, details: message, metadata }, response, reason: reply.reason };
    }
    case 'refuse':
      return { status: refusalStatus(reply.refusal), response: undefined, reason: reply.refusal.reason };
    case 'status':
      return { status: statusErrorStatus(reply.error), response: undefined, reason: undefined };
    case 'fault':
      return {
        status: { code: status.INTERNAL, details: 'internal error', metadata: new Metadata() },
        response: undefined,
        reason: undefined,
      };
  }
}
