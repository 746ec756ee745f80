/**
 * What a store must do, in memory: small enough to be read and believed. One record per key, one clock that only the steps
 * move, tokens that are never used twice.
 */

/** How many keys a run has; the first {@link UNDATED} carry no date, the others one day each. */
export const KEYS = 4;
export const UNDATED = 2;

/** A step that an owner, a caller or an operator takes. `held` counts back from the newest claim. */
export type Step =
  | { readonly do: 'claim'; readonly key: number; readonly content: number; readonly store: number }
  | { readonly do: 'claim_twice_at_once'; readonly key: number; readonly content: number }
  | { readonly do: 'claim_all_at_once'; readonly content: number; readonly store: number }
  | { readonly do: 'take_over_seen'; readonly held: number }
  | { readonly do: 'complete'; readonly held: number; readonly store: number }
  | { readonly do: 'complete_and_throw'; readonly held: number; readonly store: number }
  | {
      readonly do: 'renew' | 'release' | 'publish' | 'end_lease' | 'settle';
      readonly held: number;
      readonly store: number;
    }
  | { readonly do: 'look_up'; readonly key: number; readonly content: number; readonly store: number }
  | { readonly do: 'still_running'; readonly key: number; readonly store: number }
  | { readonly do: 'leases_run_out' }
  | { readonly do: 'expire' | 'park'; readonly key: number }
  | { readonly do: 'drop'; readonly day: number };

/** What a step is told. Compared as it is with what the real store told. */
export type Told = string | readonly string[];

interface ModelRecord {
  readonly content: number;
  state: 'claimed' | 'completed' | 'expired' | 'parked';
  token: number;
  attempt: number;
  leaseRuns: boolean;
  resource: boolean;
  answer: string;
}

/** A claim that somebody believes to have. */
export interface ModelHandle {
  readonly key: number;
  readonly token: number;
}

/** The whole world of a run. */
export class Model {
  readonly handles: ModelHandle[] = [];
  /** The answer that was committed for a key, once and for all. */
  readonly committed = new Map<number, string>();
  private readonly records = new Map<number, ModelRecord>();
  private droppedDays = 0;
  private tokens = 0;

  /** Takes a step, and says what the store must tell. */
  take(step: Step): Told {
    if ('held' in step) {
      const handle = this.handleOf(step.held);
      return handle === undefined ? 'skipped' : this.own(step, handle);
    }
    switch (step.do) {
      case 'claim':
        return this.claim(step.key, step.content);
      case 'claim_twice_at_once': {
        const told = this.claim(step.key, step.content);
        return [told, this.claim(step.key, step.content)].sort();
      }
      case 'claim_all_at_once':
        return Array.from({ length: KEYS }, (_, key) => this.claim(key, step.content));
      case 'look_up':
        return this.lookUp(step.key, step.content);
      case 'still_running': {
        const record = this.records.get(step.key);
        return String(record?.state === 'claimed' && record.leaseRuns);
      }
      case 'leases_run_out':
        for (const record of this.records.values()) record.leaseRuns = false;
        return '';
      case 'expire': {
        const record = this.records.get(step.key);
        if (record?.state === 'completed') record.state = 'expired';
        return '';
      }
      case 'park': {
        const record = this.records.get(step.key);
        if (record?.state === 'claimed' && !record.leaseRuns) record.state = 'parked';
        return '';
      }
      case 'drop': {
        this.droppedDays = Math.max(this.droppedDays, step.day + 1);
        for (let key = UNDATED; key < KEYS; key += 1) if (this.isDropped(key)) this.records.delete(key);
        return '';
      }
    }
  }

  /** Steps count handles back from the newest, and around, since they don't know how many there will be. */
  handleOf(held: number): ModelHandle | undefined {
    return this.handles.at(-1 - (held % this.handles.length));
  }

  private own(step: Extract<Step, { readonly held: number }>, { key, token }: ModelHandle): Told {
    const record = this.records.get(key);
    const ours = record?.token === token ? record : undefined;
    const held = ours?.state === 'claimed' ? ours : undefined;
    switch (step.do) {
      case 'complete':
        if (held === undefined) return 'false';
        held.state = 'completed';
        held.answer = answerOf(token);
        this.committed.set(key, held.answer);
        return 'true';
      case 'complete_and_throw':
        return 'rolled back';
      case 'renew':
        if (held !== undefined) held.leaseRuns = true;
        return held === undefined ? 'lost' : 'renewed';
      case 'release':
        if (held !== undefined) this.records.delete(key);
        return String(held !== undefined);
      case 'publish':
        if (held !== undefined) held.resource = true;
        return String(held !== undefined);
      case 'end_lease':
        if (held !== undefined) {
          held.leaseRuns = false;
          held.token = this.newToken();
        }
        return held === undefined ? '0' : '1';
      case 'settle':
        if (held !== undefined) {
          held.token = this.grant(key);
          return 'never_committed';
        }
        return ours?.state === 'completed' ? 'committed' : 'lost';
      case 'take_over_seen':
        if (held === undefined || held.leaseRuns) return '0';
        this.takeOver(key, held);
        return '1';
    }
  }

  private claim(key: number, content: number): string {
    const record = this.records.get(key);
    if (record === undefined) {
      if (this.isDropped(key)) return 'expired';
      const token = this.grant(key);
      this.records.set(key, {
        ...{ content, state: 'claimed', token, attempt: 1, leaseRuns: true, resource: false, answer: '' },
      });
      return 'granted 1';
    }
    if (record.content !== content) return 'mismatch';
    if (record.state !== 'claimed') return told(record);
    if (record.leaseRuns) return `in_progress${record.resource ? ' payments/1' : ''}`;
    this.takeOver(key, record);
    return `granted ${String(record.attempt)} by takeover`;
  }

  private takeOver(key: number, record: ModelRecord): void {
    record.token = this.grant(key);
    record.attempt += 1;
    record.leaseRuns = true;
  }

  private lookUp(key: number, content: number): string {
    const record = this.records.get(key);
    if (record === undefined) return 'absent';
    return record.content === content ? told(record) : 'mismatch';
  }

  private isDropped(key: number): boolean {
    return key >= UNDATED && key - UNDATED < this.droppedDays;
  }

  private grant(key: number): number {
    const token = this.newToken();
    this.handles.push({ key, token });
    return token;
  }

  private newToken(): number {
    this.tokens += 1;
    return this.tokens;
  }
}

/** What the attempt with that token answers. */
export function answerOf(token: number): string {
  return `answer ${String(token)}`;
}

function told({ state, answer }: ModelRecord): string {
  return state === 'completed' ? `completed ${answer}` : state;
}
