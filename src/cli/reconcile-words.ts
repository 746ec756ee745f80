import { parseArgs } from 'node:util';
import type { OrderName } from '../reconciliation/compare-order';
import { UsageError } from './command';

/** What `reconcile` is to compare. */
export type ReconcileWords =
  | {
      readonly kind: 'all';
      readonly json: boolean;
      /** Undefined for the default. */
      readonly since: Date | undefined;
      readonly repair: boolean;
    }
  | { readonly kind: 'order'; readonly json: boolean; readonly order: OrderName };

const DATE = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/;

/**
 * Understands the words before anything is connected.
 *
 * @throws UsageError, or an error of `parseArgs`
 */
export function readReconcileWords(args: readonly string[]): ReconcileWords {
  const { values } = parseArgs({
    args: [...args],
    options: {
      since: { type: 'string' },
      order: { type: 'string' },
      scope: { type: 'string' },
      json: { type: 'boolean', default: false },
      repair: { type: 'boolean', default: false },
      'dry-run': { type: 'boolean', default: false },
    },
  });
  const { since, order: orderId, scope, json, repair, 'dry-run': dryRun } = values;
  if (repair && dryRun) throw new UsageError('--dry-run only looks, and --repair repairs: expected one of them');
  if (orderId === undefined) {
    if (scope !== undefined) throw new UsageError('--scope goes with --order: expected both, or neither');
    return { kind: 'all', json, repair, since: since === undefined ? undefined : readDate(since) };
  }
  if (scope === undefined) throw new UsageError('--order needs --scope: the account that calls it so');
  if (orderId === '' || scope === '') throw new UsageError('--order and --scope: expected texts that are not empty');
  if (repair) throw new UsageError('--order only looks: expected --repair without it, which repairs all that is found');
  if (since !== undefined) throw new UsageError('--order looks at all times: expected no --since with it');
  return { kind: 'order', json, order: { scope, orderId } };
}

function readDate(text: string): Date {
  const date = new Date(text);
  // Without a zone a time would mean another one on another machine; a date alone is UTC.
  if (!DATE.test(text) || Number.isNaN(date.getTime()) || date.getTime() > Date.now()) {
    throw new UsageError('--since: expected a date or time that is over, such as 2026-01-31 or 2026-01-31T08:00:00Z');
  }
  return date;
}
