/** What goes wrong with one call of the simulated card network. */
export type NetworkFault =
  | { readonly kind: 'ok' }
  /** It is worked on only after a while. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** UNAVAILABLE, and nothing happened. */
  | { readonly kind: 'outage' }
  /** It happens, and UNAVAILABLE is all that its caller hears. */
  | { readonly kind: 'lost_answer' }
  /** It happens, and its caller hears nothing at all. */
  | { readonly kind: 'silence' }
  /** It happens, and the answer is OK and empty. */
  | { readonly kind: 'nonsense' }
  /** The process ends as by a power cut, before it happens or when it has happened. */
  | { readonly kind: 'crash_before' }
  | { readonly kind: 'crash_after' };

/** Says what goes wrong with the next call. */
export type NextFault = () => NetworkFault;

/** No fault, whatever comes. */
export const NO_FAULTS: NextFault = () => ({ kind: 'ok' });

const KINDS = ['ok', 'outage', 'lost_answer', 'silence', 'nonsense', 'crash_before', 'crash_after'] as const;
const ENTRY = /^(?<kind>[a-z_]+)(?::(?<ms>\d{1,6}))?(?:\*(?<times>\d{0,6}))?$/;

/** How a script of faults is written, for whoever wrote another. */
export const FAULTS_EXPECTED =
  `a list such as "ok*3,lost_answer,delay:500*", one entry for each call in turn: ${KINDS.join(', ')} or delay:<ms>; ` +
  '*n repeats an entry, * for ever';

/** Most cards that can be declined in a row. */
export const MOST_DECLINES = 1_000_000;

/**
 * Reads a script of faults: one for each call in turn, and none when it is used up.
 *
 * @returns undefined where it can't be read; see {@link FAULTS_EXPECTED}
 */
export function readFaults(script: string): NextFault | undefined {
  const entries: { readonly fault: NetworkFault; times: number }[] = [];
  for (const text of script.split(',')) {
    const { kind, ms, times } = ENTRY.exec(text.trim())?.groups ?? {};
    const fault = kind === undefined ? undefined : readFault(kind, ms);
    if (fault === undefined) return undefined;
    entries.push({ fault, times: times === undefined ? 1 : times === '' ? Infinity : Number(times) });
  }
  return () => {
    const entry = entries.find(({ times }) => times > 0);
    if (entry === undefined) return { kind: 'ok' };
    entry.times -= 1;
    return entry.fault;
  };
}

function readFault(text: string, ms: string | undefined): NetworkFault | undefined {
  if (text === 'delay') return ms === undefined ? undefined : { kind: 'delay', ms: Number(ms) };
  const kind = KINDS.find((known) => known === text);
  return kind === undefined || ms !== undefined ? undefined : { kind };
}
