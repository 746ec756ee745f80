import { status } from '@grpc/grpc-js';
import { StatusError } from '../errors';
import type { CompletedOutcome, NotKeptOutcome } from '../store/store';
import * as refusals from './refusals';
import type { RecordSeen, Reply } from './reply';

/**
 * The answer of another attempt, told again: as it was recorded, or rebuilt, or refused because it was not kept. Never
 * rejects: a rebuild that fails changes nothing, and the next retry rebuilds again.
 *
 * @param rebuild makes the serialized answer anew; undefined where the method doesn't
 * @param onFault told what broke, and why
 */
export async function replay(
  found: CompletedOutcome | NotKeptOutcome,
  rebuild: ((resource: string) => Promise<Buffer>) | undefined,
  onFault: (what: string, error: unknown) => void,
): Promise<Reply> {
  const record = recordOf(found);
  if (found.kind === 'completed') {
    return { kind: 'answer', answer: found.answer, replayed: true, expiresAt: found.expiresAt, record };
  }
  const { code, resource, expiresAt } = found;
  const marks = { replayed: true, expiresAt, record };
  if (rebuild === undefined || resource === undefined || code !== (status.OK as number)) {
    return { kind: 'refuse', refusal: refusals.responseNotRecorded(resource), ...marks };
  }
  try {
    const answer = { code, message: '', response: await rebuild(resource), trailers: undefined };
    return { kind: 'answer', answer, ...marks };
  } catch (error) {
    // Come again: it says nothing of what was done.
    const isLater = error instanceof StatusError && error.code === status.UNAVAILABLE;
    if (isLater) return { kind: 'status', error, ...marks };
    onFault('a recorded answer could not be rebuilt', error);
    if (!(error instanceof StatusError)) return { kind: 'fault', record };
    // A refusal would be taken for one of the request, which was carried out.
    return { kind: 'refuse', refusal: refusals.responseNotRecorded(resource), ...marks };
  }
}

/** What the log is told of an answer that was given before. */
export function recordOf(found: CompletedOutcome | NotKeptOutcome): RecordSeen {
  return { state: 'completed', resource: found.kind === 'completed' ? found.answer.resource : found.resource };
}
