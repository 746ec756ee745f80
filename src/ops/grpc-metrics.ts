import {
  type Deadline,
  type MethodDefinition,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  status,
} from '@grpc/grpc-js';
import { Counter, Histogram, type Registry } from 'prom-client';
import { GRPC_CODES, grpcCode, methodLabels } from './grpc-labels';

/** What the metrics need to know of a served method; a method definition of grpc-js fits. */
export type ServedMethod = Pick<MethodDefinition<never, never>, 'path' | 'requestStream' | 'responseStream'>;

const METHOD = ['grpc_type', 'grpc_service', 'grpc_method'] as const;

/** Seconds. Those of go-grpc, and two more for calls that use up a long deadline. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/**
 * A client whose deadline passes hangs up, which can arrive a moment before our own timer for the same deadline. A call
 * that is dropped this shortly before its deadline counts as one that met it.
 */
const DEADLINE_TOLERANCE_MS = 50;

/**
 * Creates the interceptor that counts calls as go-grpc does: `grpc_server_started_total`, `grpc_server_handled_total` by
 * code in Go spelling, `grpc_server_handling_seconds`. Each call counts once in each. Unknown methods never get here.
 *
 * It must be the first in `new Server({ interceptors })`, which is the one nearest the wire: what the server answers by
 * itself (deadline passed, message too large or unreadable) no later one can see.
 *
 * @param methods the served methods, whose series are at 0 from the start (case M2)
 */
export function createGrpcMetrics(registry: Registry, methods: readonly ServedMethod[]): ServerInterceptor {
  const registers = [registry];
  const started = new Counter({
    name: 'grpc_server_started_total',
    help: 'Calls that reached the server.',
    labelNames: METHOD,
    registers,
  });
  const handled = new Counter({
    name: 'grpc_server_handled_total',
    help: 'Calls that ended on the server, whatever the code.',
    labelNames: [...METHOD, 'grpc_code'],
    registers,
  });
  const handling = new Histogram({
    name: 'grpc_server_handling_seconds',
    help: 'From the start of a call to its end on the server.',
    labelNames: METHOD,
    buckets: BUCKETS,
    registers,
  });
  for (const labels of methods.map(callLabels)) {
    started.inc(labels, 0);
    handling.zero(labels);
    for (const code of GRPC_CODES) handled.inc({ ...labels, grpc_code: code }, 0);
  }

  return (method, call) => {
    const labels = callLabels(method);
    const startedAt = performance.now();
    let ended = false;
    const end = (code: status) => {
      if (ended) return;
      ended = true;
      handled.inc({ ...labels, grpc_code: grpcCode(code) });
      handling.observe(labels, (performance.now() - startedAt) / 1000);
    };
    started.inc(labels);
    watchStatus(call, end);
    // `onCancel` comes after every call, also after one that was answered.
    const onCancel = () => end(cancelCode(call.getDeadline()));
    return new ServerInterceptingCall(call, { start: (next) => next({ onCancel }) });
  };
}

/**
 * Watches the call itself instead of the responder of an interceptor, since the server's own answers pass through the
 * one and not through the other. Should they cease to, such a call ends with its `onCancel`.
 */
function watchStatus(call: ServerInterceptingCallInterface, end: (code: status) => void): void {
  const send = call.sendStatus.bind(call);
  call.sendStatus = (sent) => {
    end(sent.code);
    send(sent);
  };
}

/** What a call ended with that nobody answered. */
function cancelCode(deadline: Deadline): status {
  const leftMs = Number(deadline) - Date.now();
  return leftMs <= DEADLINE_TOLERANCE_MS ? status.DEADLINE_EXCEEDED : status.CANCELLED;
}

function callLabels({ path, requestStream, responseStream }: ServedMethod) {
  return { grpc_type: callType(requestStream, responseStream), ...methodLabels(path) };
}

function callType(requestStream: boolean, responseStream: boolean): string {
  if (requestStream) return responseStream ? 'bidi_stream' : 'client_stream';
  return responseStream ? 'server_stream' : 'unary';
}
