import type { PolicyRegistry } from '../idempotency/index';

/** Events of a kind, and who is told of them. */
export interface SentEvents {
  /** The method that they end in, as on the wire. */
  readonly path: string;
  /** For how long after its making an event is sent, milliseconds. */
  readonly sentForMs: number;
}

/**
 * Checks, when it is configured who is told, that no event is sent for as long as its consumer takes its key for the first
 * time or longer, nor for as long as that may have forgotten what it did: past either end the event would be refused,
 * or would be done twice (design 4.10, 6).
 *
 * @throws Error that names the method and both times
 */
export function assertKeyIsKept({ path, sentForMs }: SentEvents, policies: Pick<PolicyRegistry, 'get'>): void {
  const policy = policies.get(path);
  if (policy === undefined) throw new Error(`${path} has no policy: nothing says for how long its events may be sent`);
  const keptForMs = Math.min(policy.maxKeyAgeMs, policy.retentionMs);
  if (sentForMs < keptForMs) return;
  throw new Error(
    `events for ${path} are sent for ${sentForMs} ms, and it may forget their key after ${keptForMs} ms: ` +
      'send them for a shorter time, or raise its max_key_age and retention',
  );
}
