import {
  Metadata,
  ResponderBuilder,
  ServerInterceptingCall,
  ServerListenerBuilder,
  type ServerInterceptor,
  status,
} from '@grpc/grpc-js';
import type { NetworkFault } from './faults';

/** What the interceptor works with. */
export interface FaultInterceptorOptions {
  /** Says what goes wrong with a call that has arrived. */
  readonly nextFault: (path: string) => NetworkFault;
  /** Ends the process at once, as a power cut does. */
  readonly crash: () => void;
}

const NOTHING_SAID = { code: status.UNAVAILABLE, details: 'the connection was lost', metadata: new Metadata() };

/** Lets go wrong what is to go wrong. The first in `interceptors`: nearest to the wire, so that no answer passes it by. */
export function createFaultInterceptor({ nextFault, crash }: FaultInterceptorOptions): ServerInterceptor {
  return ({ path }, call) => {
    const fault = nextFault(path);
    const listener = new ServerListenerBuilder().withOnReceiveHalfClose((next) => {
      if (fault.kind === 'outage') call.sendStatus(NOTHING_SAID);
      else if (fault.kind === 'crash_before') crash();
      else if (fault.kind === 'delay') setTimeout(next, fault.ms);
      else next();
    });
    /** What becomes of an answer, at the first part of it: by then everything has happened. */
    const answer = (send: () => void): void => {
      if (fault.kind === 'crash_after') crash();
      else if (fault.kind === 'lost_answer') call.sendStatus(NOTHING_SAID);
      else if (fault.kind !== 'silence') send();
    };
    let hasBegun = false;
    // What is swallowed holds back the parts after it.
    const responder = new ResponderBuilder()
      .withStart((next) => next(listener.build()))
      .withSendMetadata((metadata, next) => {
        hasBegun = true;
        answer(() => next(metadata));
      })
      .withSendMessage((message, next) => next(fault.kind === 'nonsense' ? {} : message))
      .withSendStatus((end, next) => (hasBegun ? next(end) : answer(() => next(end))));
    return new ServerInterceptingCall(call, responder.build());
  };
}
