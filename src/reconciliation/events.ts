import type { Finding, FindingKind, Outcome } from './findings';

/** What a reconciliation tells, for metrics and logs. */
export type ReconciliationEvent =
  /** The books were compared. */
  | {
      readonly type: 'compared';
      /** How many findings there are of each kind, those of none included. */
      readonly found: Readonly<Record<FindingKind, number>>;
      readonly agreed: number;
      readonly underWay: number;
      /** When, milliseconds since 1970. */
      readonly atMs: number;
    }
  /** One finding was gone about; never in a dry run. */
  | { readonly type: 'settled'; readonly kind: FindingKind; readonly finding: Finding; readonly outcome: Outcome };

/** Called synchronously; it must be quick and must not throw. */
export type ReconciliationListener = (event: ReconciliationEvent) => void;
