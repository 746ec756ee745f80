import { Registry } from 'prom-client';
import { createLogger } from '../../src/ops/logger';
import { logReconciliationEvents } from '../../src/ops/reconciliation-log';
import { createReconciliationMetrics } from '../../src/ops/reconciliation-metrics';
import { FINDING_KINDS, type FindingKind } from '../../src/reconciliation/findings';
import type { ReconciliationListener } from '../../src/reconciliation/events';

const found = (counts: Partial<Record<FindingKind, number>>) =>
  ({ ...Object.fromEntries(FINDING_KINDS.map((kind) => [kind, 0])), ...counts }) as Record<FindingKind, number>;

const payment = { paymentId: 'p', scope: 's', orderId: 'o', authorizationId: 'a', amountMinor: 1n, currency: 'EUR' };
const finding = { kind: 'uncharged_payment', payment } as const;
const settled = { type: 'settled', kind: 'uncharged_payment', finding } as const;

it('what a reconciliation tells is counted, every series from zero, with no label but the kind and outcome', async () => {
  const registry = new Registry();
  const onEvent: ReconciliationListener = createReconciliationMetrics(registry, FINDING_KINDS);
  const linesNow = async () => (await registry.metrics()).split('\n').filter((line) => !line.startsWith('#'));
  const atStart = await linesNow();
  // Eight kinds, with three outcomes each, and three numbers.
  expect(atStart.filter((line) => / 0$/.test(line))).toHaveLength(8 + 24 + 3);

  onEvent({ type: 'compared', found: found({ uncharged_payment: 3 }), agreed: 40, underWay: 2, atMs: 5_000 });
  onEvent({ ...settled, outcome: { kind: 'repaired', how: 'cancelled' } });
  onEvent({ ...settled, outcome: { kind: 'repaired', how: 'cancelled' } });
  onEvent({ ...settled, outcome: { kind: 'left', why: 'it has refunds' } });
  expect((await linesNow()).filter((line) => line !== '' && !line.endsWith(' 0'))).toEqual([
    'reconciliation_findings{kind="uncharged_payment"} 3',
    'reconciliation_agreed_payments 40',
    'reconciliation_under_way 2',
    'reconciliation_last_run_timestamp_seconds 5',
    'reconciliation_settled_total{kind="uncharged_payment",outcome="repaired"} 2',
    'reconciliation_settled_total{kind="uncharged_payment",outcome="left"} 1',
  ]);

  // The next look finds nothing any more.
  onEvent({ type: 'compared', found: found({}), agreed: 40, underWay: 0, atMs: 6_000 });
  expect(await linesNow()).toContain('reconciliation_findings{kind="uncharged_payment"} 0');
});

it('a difference, every repair and what waits for a person are logged, and nothing where the books agree', () => {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };
  const onEvent: ReconciliationListener = logReconciliationEvents(createLogger({ level: 'debug', destination }));
  onEvent({ type: 'compared', found: found({}), agreed: 40, underWay: 0, atMs: 6_000 });
  onEvent({ ...settled, outcome: { kind: 'gone' } });
  expect(lines).toEqual([]);
  onEvent({ type: 'compared', found: found({ uncharged_payment: 3 }), agreed: 40, underWay: 0, atMs: 6_000 });
  onEvent({ ...settled, outcome: { kind: 'repaired', how: 'cancelled' } });
  onEvent({ ...settled, outcome: { kind: 'left', why: 'it has refunds' } });
  expect(lines).toMatchObject([
    { level: 'error', found: { uncharged_payment: 3 } },
    { level: 'warn', kind: 'uncharged_payment', how: 'cancelled' },
    { level: 'error', kind: 'uncharged_payment', why: 'it has refunds' },
  ]);
});
