import { Metadata, type MethodDefinition, status } from '@grpc/grpc-js';
import { REFUSALS } from '../errors';
import type { ServerEvent } from '../events';
import { parseKey } from '../key';
import type { MethodPolicy } from '../policy';
import type { ClaimRequest, HalfFinishedRequest, HeldClaim } from '../store/store';
import type { Handler, Rebuild } from './handler';
import { ofRequest } from './of-request';
import { type Reply, wireReply } from './reply';
import { runOnce } from './run-once';
import { type AdapterOptions, keepingItsLease } from './service';

/** A method whose half-finished requests are resumed in this process. */
export interface ResumableMethod<Tx> {
  readonly policy: MethodPolicy;
  readonly definition: Pick<MethodDefinition<unknown, unknown>, 'requestDeserialize' | 'responseSerialize'>;
  readonly handle: Handler<Tx, unknown, unknown>;
  readonly rebuild: Rebuild<unknown> | undefined;
}

/** What resuming works with. */
export interface ResumeContext<Tx> extends AdapterOptions<Tx> {
  /** Most attempts of this process at once. */
  readonly mostAttempts: number;
}

/** What became of a resumed request; `overtaken` where another attempt got ahead of it, such as its caller's retry. */
export type ResumeResult = 'completed' | 'failed' | 'overtaken';

/** A request that was taken up and runs. */
export interface Resumption {
  /** Never rejects. */
  readonly ended: Promise<ResumeResult>;
}

/** What one look takes up. */
export interface TakeUpTerms {
  readonly limit: number;
  readonly graceMs: number;
  /** Nothing more is taken up once it fires. */
  readonly signal: AbortSignal;
}

const NOT_TAKEN_OVER = 'a half-finished request could not be taken over';
/** The longest wait for a caller, milliseconds. */
const LONGEST_WAIT_MS = 3_600_000;

/** Takes up half-finished requests that are due, and starts their handlers. Rejects when the store can't be read. */
export async function takeUp<Tx extends object>(
  context: ResumeContext<Tx>,
  { limit, graceMs, signal }: TakeUpTerms,
): Promise<readonly Resumption[]> {
  const { store, resumable, leases, mostAttempts } = context;
  const most = Math.min(limit, mostAttempts - leases.count());
  if (most <= 0 || resumable.size === 0) return [];
  const paths = [...resumable.keys()];
  const terms = { paths, shortestWaitMs: graceMs, longestWaitMs: LONGEST_WAIT_MS, limit: most };
  const started: Resumption[] = [];
  for (const found of await store.findHalfFinished(terms)) {
    if (signal.aborted) break;
    const method = resumable.get(found.path);
    const resumption = method && (await takeOver(context, method, found));
    if (resumption !== undefined) started.push(resumption);
  }
  return started;
}

/** Undefined where somebody else was faster, or it was tried too often. */
async function takeOver<Tx extends object>(
  context: ResumeContext<Tx>,
  method: ResumableMethod<Tx>,
  { scope, requestId, fingerprint, message }: HalfFinishedRequest,
): Promise<Resumption | undefined> {
  const { store, leases, running, onEvent } = context;
  const { policy } = method;
  const { path } = policy;
  // As it was read once, whatever the policy asks of new keys by now.
  const reading = parseKey([requestId], 'OPAQUE');
  if (reading.kind !== 'key') throw new Error(`${path}: a record has no key but what is ${reading.kind}`);
  const request = { policy, scope, key: reading.key, fingerprint, message };
  const askedAtMs = performance.now();
  const outcome = await leases.claiming(() => store.takeOverHalfFinished(request));
  switch (outcome.kind) {
    case 'granted': {
      onEvent({ type: 'takeover', path });
      const ended = run(context, method, { request, message, claim: outcome.claim, askedAtMs });
      running.track(ended.then(() => undefined));
      return { ended };
    }
    case 'parked':
      if (outcome.now) onEvent({ type: 'parked', path, requestId });
      return undefined;
    case 'unavailable':
      onEvent({ type: 'fault', path, requestId, what: NOT_TAKEN_OVER, error: outcome.error });
      return undefined;
    case 'absent':
    case 'completed':
    case 'not_kept':
    case 'in_progress':
    case 'mismatch':
    case 'from_future':
    case 'expired':
      return undefined;
  }
}

interface TakenOver {
  readonly request: ClaimRequest;
  readonly message: Buffer;
  readonly claim: HeldClaim;
  readonly askedAtMs: number;
}

async function run<Tx extends object>(
  context: ResumeContext<Tx>,
  { policy, definition, handle, rebuild }: ResumableMethod<Tx>,
  claimed: TakenOver,
): Promise<ResumeResult> {
  const { store, onEvent } = context;
  const { scope, key } = claimed.request;
  const { reply, published } = await keepingItsLease(context, policy, { claimed }, (held) =>
    runOnce<Tx, Buffer, unknown>({
      ...{ policy, scope, held, rebuild, store, onEvent: ofRequest(onEvent, key.text), requestId: key.text },
      // There is no caller: nobody's metadata, and nobody who stops waiting.
      ...{ metadata: new Metadata(), deadline: undefined },
      message: claimed.message,
      // In the handler's place, so that what can't be read counts as an attempt, and is parked after the last.
      handler: async (bytes, attempt) => handle(read(definition, bytes), attempt),
      serialize: definition.responseSerialize,
    }),
  );
  const { result, code } = endOf(reply);
  onEvent({
    ...{ type: 'resumed', path: policy.path, requestId: key.text, scope, result, code, published },
    ...{ attempt: claimed.claim.attempt, durationMs: performance.now() - claimed.askedAtMs },
    ...whyFailed(reply),
  });
  return result;
}

function read({ requestDeserialize }: ResumableMethod<object>['definition'], bytes: Buffer): unknown {
  try {
    return requestDeserialize(bytes);
  } catch (cause) {
    throw new Error('a stored request is not a message that its method takes', { cause });
  }
}

/** What the log says of it. */
function whyFailed(reply: Reply): Pick<Extract<ServerEvent, { type: 'resumed' }>, 'reason' | 'error'> {
  const { reason, error } = wireReply(reply);
  return { ...(reason === undefined ? {} : { reason }), ...(error === undefined ? {} : { error }) };
}

/** What a caller would have been told, as a result and a gRPC code. */
function endOf(reply: Reply): { readonly result: ResumeResult; readonly code: status } {
  switch (reply.kind) {
    case 'answer':
      return { result: reply.replayed ? 'overtaken' : 'completed', code: reply.answer.code };
    case 'refuse': {
      const isLost = reply.refusal.reason === 'CLAIM_LOST' || reply.replayed === true;
      return { result: isLost ? 'overtaken' : 'failed', code: REFUSALS[reply.refusal.reason].code };
    }
    case 'status':
      return { result: reply.replayed === true ? 'overtaken' : 'failed', code: reply.error.code };
    case 'fault':
      return { result: 'failed', code: status.INTERNAL };
  }
}
