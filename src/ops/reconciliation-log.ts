import type { Logger } from 'pino';

/** What the log has to say of what a reconciliation tells. */
export type LoggedReconciliationEvent =
  | { readonly type: 'compared'; readonly found: Readonly<Record<string, number>> }
  | {
      readonly type: 'settled';
      readonly kind: string;
      readonly outcome:
        | { readonly kind: 'found' | 'gone' }
        | { readonly kind: 'repaired'; readonly how: string }
        | { readonly kind: 'left'; readonly why: string };
    };

/** Writes a line where the books disagree, one for every repair, and one for everything that waits for a person. */
export function logReconciliationEvents(logger: Logger): (event: LoggedReconciliationEvent) => void {
  return (event) => {
    switch (event.type) {
      case 'compared': {
        const found = Object.fromEntries(Object.entries(event.found).filter(([, count]) => count > 0));
        if (Object.keys(found).length === 0) return;
        return logger.error({ found }, 'our books and those of the card network disagree: grpc-idempotency reconcile');
      }
      case 'settled': {
        const { kind, outcome } = event;
        switch (outcome.kind) {
          case 'repaired':
            return logger.warn({ kind, how: outcome.how }, 'the books were repaired');
          case 'left':
            return logger.error({ kind, why: outcome.why }, 'the books still disagree: this waits for a person');
          case 'found':
          case 'gone':
            return;
        }
      }
    }
  };
}
