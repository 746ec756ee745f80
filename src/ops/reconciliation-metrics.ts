import { Counter, Gauge, type Registry } from 'prom-client';

/** What the metrics count of what a reconciliation tells. */
export type CountedReconciliationEvent =
  | {
      readonly type: 'compared';
      readonly found: Readonly<Record<string, number>>;
      readonly agreed: number;
      readonly underWay: number;
      /** Milliseconds since 1970. */
      readonly atMs: number;
    }
  | {
      readonly type: 'settled';
      readonly kind: string;
      readonly outcome: { readonly kind: 'found' | 'repaired' | 'gone' | 'left' };
    };

/**
 * The `reconciliation_*` family of design 3.4. The gauges are as the last comparison of this process found the books; their
 * label is the kind of finding, of which there are a handful (case M1).
 *
 * @param kinds the kinds of findings there are: every series is there from the start (case M2)
 */
export function createReconciliationMetrics(
  registry: Registry,
  kinds: readonly string[],
): (event: CountedReconciliationEvent) => void {
  const registers = [registry];
  const labelNames = ['kind'];
  const found = new Gauge({
    ...{ name: 'reconciliation_findings', labelNames, registers },
    help: 'What the books disagreed about, by kind, at the last comparison.',
  });
  const agreed = new Gauge({
    ...{ name: 'reconciliation_agreed_payments', registers },
    help: 'Payments whose charge the card network holds, at the last comparison.',
  });
  const underWay = new Gauge({
    ...{ name: 'reconciliation_under_way', registers },
    help: 'Charges, payments, drafts and refunds that were left alone because they may still be running, at the last comparison.',
  });
  const lastRun = new Gauge({
    ...{ name: 'reconciliation_last_run_timestamp_seconds', registers },
    help: 'When this process last compared the books, seconds since 1970; 0 when it has not.',
  });
  const settled = new Counter({
    ...{ name: 'reconciliation_settled_total', labelNames: [...labelNames, 'outcome'], registers },
    help: 'Findings that this process went about, by kind and by what became of them.',
  });
  for (const kind of kinds) {
    found.set({ kind }, 0);
    for (const outcome of ['repaired', 'gone', 'left']) settled.inc({ kind, outcome }, 0);
  }
  return (event) => {
    switch (event.type) {
      case 'compared':
        for (const [kind, count] of Object.entries(event.found)) found.set({ kind }, count);
        agreed.set(event.agreed);
        underWay.set(event.underWay);
        return lastRun.set(event.atMs / 1_000);
      case 'settled':
        return settled.inc({ kind: event.kind, outcome: event.outcome.kind });
    }
  };
}
