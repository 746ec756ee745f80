import fc from 'fast-check';
import { KEYS, type Step, UNDATED } from './model';

/** Histories that every run follows, whatever it draws: the ones that pay twice where one condition is missing. */
export const KNOWN_HISTORIES: readonly (readonly Step[])[] = [
  // A process read the record before it was completed, and takes it over after its lease.
  [
    { do: 'claim', key: 0, content: 0, store: 0 },
    { do: 'complete', held: 0, store: 0 },
    { do: 'leases_run_out' },
    { do: 'take_over_seen', held: 0 },
    { do: 'complete', held: 0, store: 1 },
  ],
  // An owner that was overtaken completes, then the new one, then the old one again.
  [
    { do: 'claim', key: 1, content: 0, store: 0 },
    { do: 'leases_run_out' },
    { do: 'claim', key: 1, content: 0, store: 1 },
    { do: 'complete', held: 1, store: 0 },
    { do: 'complete', held: 0, store: 1 },
    { do: 'complete', held: 1, store: 0 },
    { do: 'claim', key: 1, content: 0, store: 0 },
  ],
  // A day is dropped under a running attempt; the key is never run again.
  [
    { do: 'claim', key: 2, content: 0, store: 0 },
    { do: 'drop', day: 0 },
    { do: 'complete', held: 0, store: 0 },
    { do: 'claim', key: 2, content: 0, store: 1 },
    { do: 'claim', key: 3, content: 0, store: 1 },
  ],
];

/** Steps worth taking, in any order. Claims, completions and ends of leases come most. */
export function anyStep(): fc.Arbitrary<Step> {
  const key = fc.nat({ max: KEYS - 1 });
  // Mostly one of the newest claims: the others are long stale.
  const held = fc.oneof({ weight: 3, arbitrary: fc.nat({ max: 2 }) }, { weight: 1, arbitrary: fc.nat({ max: 30 }) });
  const store = fc.nat({ max: 1 });
  // Mostly the same content: another is a mismatch, and leads nowhere.
  const content = fc.nat({ max: 7 }).map((number) => (number === 7 ? 1 : 0));
  const day = fc.nat({ max: KEYS - UNDATED - 1 });
  const own = (action: Extract<Step, { readonly store: number; readonly held: number }>['do']) =>
    fc.record({ do: fc.constant(action), held, store });
  const operator = (action: Extract<Step['do'], 'expire' | 'park'>) => fc.record({ do: fc.constant(action), key });
  return fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('claim' as const), key, content, store }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('claim_twice_at_once' as const), key, content }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('claim_all_at_once' as const), content, store }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('take_over_seen' as const), held }) },
    { weight: 4, arbitrary: own('complete') },
    { weight: 1, arbitrary: own('complete_and_throw') },
    { weight: 2, arbitrary: own('renew') },
    { weight: 2, arbitrary: own('release') },
    { weight: 1, arbitrary: own('publish') },
    { weight: 2, arbitrary: own('end_lease') },
    { weight: 3, arbitrary: own('settle') },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('look_up' as const), key, content, store }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('still_running' as const), key, store }) },
    { weight: 5, arbitrary: fc.constant({ do: 'leases_run_out' as const }) },
    { weight: 1, arbitrary: operator('expire') },
    { weight: 1, arbitrary: operator('park') },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('drop' as const), day }) },
  );
}
