/** The parts of a round of retention, in their order. */
export type RetentionStep = 'create_days' | 'drop_days' | 'purge_undated_records' | 'observe';

/** What a round of retention tells those who watch it. Days are `YYYY-MM-DD`. A listener must be quick and not throw. */
export type RetentionEvent =
  /** A day that keys may carry has its table now. */
  | { readonly type: 'day_created'; readonly day: string }
  /** A day is gone; `kept` of its records were parked or half done and live on in a table of their own. */
  | { readonly type: 'day_dropped'; readonly day: string; readonly kept: number }
  /** A day was due, but an attempt still runs in it; the next round tries again. */
  | { readonly type: 'day_held_back'; readonly day: string }
  /** A day was due, but transactions that may have used it are still open; the next round goes on from there. */
  | { readonly type: 'day_postponed'; readonly day: string }
  /** Undated records of a method were deleted. `path` is the method as on the wire. */
  | { readonly type: 'purged'; readonly path: string; readonly records: number }
  /** How the records stand. */
  | { readonly type: 'observed'; readonly observation: RetentionObservation }
  /** A step could not be done; the others were, and the next round tries again. */
  | ({ readonly type: 'fault' } & RetentionFault);

/** Listens to retention. */
export type RetentionEventListener = (event: RetentionEvent) => void;

/** A step that failed. */
export interface RetentionFault {
  readonly step: RetentionStep;
  readonly error: unknown;
  /** The role of this process may not do it: a round by the role that owns the tables has to. */
  readonly missingRight: boolean;
}

/** How the records stand, by the database clock. Counts are estimates once there are more than a sample takes. */
export interface RetentionObservation {
  /** Tables that hold records: the days and the undated. */
  readonly partitions: number;
  /** Records by their state; states without a record are left out. */
  readonly records: Readonly<Record<string, number>>;
  /** Age of the oldest claim that was seen without an answer, milliseconds; 0 where there is none. */
  readonly oldestClaimAgeMs: number;
  /** Records that outlived their day and wait for a person. */
  readonly kept: number;
  /** True where only a part of the records was looked at. */
  readonly sampled: boolean;
}

/** What a round did. */
export interface RetentionReport {
  /** False where another process is at it: then nothing was done but to observe. */
  readonly elected: boolean;
  readonly created: readonly string[];
  readonly dropped: readonly string[];
  readonly heldBack: readonly string[];
  readonly postponed: readonly string[];
  /** Records that outlived a day which was dropped. */
  readonly kept: number;
  /** Undated records that were deleted. */
  readonly purged: number;
  readonly observation: RetentionObservation | undefined;
  readonly faults: readonly RetentionFault[];
}

/** Sums up the events of one round. */
export function summarize(elected: boolean, events: readonly RetentionEvent[]): RetentionReport {
  const all = <Type extends RetentionEvent['type']>(type: Type) =>
    events.filter((event): event is Extract<RetentionEvent, { type: Type }> => event.type === type);
  const dropped = all('day_dropped');
  return {
    elected,
    created: all('day_created').map(({ day }) => day),
    dropped: dropped.map(({ day }) => day),
    heldBack: all('day_held_back').map(({ day }) => day),
    postponed: all('day_postponed').map(({ day }) => day),
    kept: dropped.reduce((sum, { kept }) => sum + kept, 0),
    purged: all('purged').reduce((sum, { records }) => sum + records, 0),
    observation: all('observed').at(-1)?.observation,
    faults: all('fault').map(({ step, error, missingRight }) => ({ step, error, missingRight })),
  };
}
