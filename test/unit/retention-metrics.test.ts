import { Registry } from 'prom-client';
import type { RetentionEvent } from '../../src/idempotency/index';
import { createLogger } from '../../src/ops/logger';
import { logRetentionEvents } from '../../src/ops/retention-log';
import { createRetentionMetrics } from '../../src/ops/retention-metrics';

const FAULT: RetentionEvent = { type: 'fault', step: 'create_days', error: new Error('no right'), missingRight: true };
const EVENTS: readonly RetentionEvent[] = [
  { type: 'day_created', day: '2026-11-01' },
  { type: 'day_dropped', day: '2026-10-01', kept: 2 },
  { type: 'day_held_back', day: '2026-10-02' },
  { type: 'day_postponed', day: '2026-10-03' },
  { type: 'purged', path: '/payments.v1.PaymentsService/CreatePayment', records: 7 },
  {
    type: 'observed',
    observation: { partitions: 9, records: { claimed: 3 }, oldestClaimAgeMs: 1_500, kept: 2, sampled: false },
  },
  FAULT,
];

it('retention is counted, and what its last round saw is shown', async () => {
  const registry = new Registry();
  const onEvent = createRetentionMetrics(registry);
  expect(await registry.metrics()).toContain('idempotency_retention_faults_total{step="drop_days"} 0');

  for (const event of EVENTS) onEvent(event);

  const text = await registry.metrics();
  for (const line of [
    'idempotency_days_created_total 1',
    'idempotency_days_dropped_total 1',
    'idempotency_days_held_back_total 1',
    'idempotency_days_postponed_total 1',
    'idempotency_purged_records_total 7',
    'idempotency_retention_faults_total{step="create_days"} 1',
    'idempotency_partitions 9',
    'idempotency_records{state="claimed"} 3',
    'idempotency_records{state="completed"} 0',
    'idempotency_records_kept 2',
    'idempotency_oldest_claim_age_seconds 1.5',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
});

it('a line is logged for all but the numbers, and a missing right says what to do', () => {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  const onEvent = logRetentionEvents(createLogger({ level: 'debug', destination: { write } }));

  for (const event of EVENTS) onEvent(event);
  onEvent({ ...FAULT, missingRight: false });

  expect(lines.map(({ level }) => level)).toEqual(['info', 'info', 'warn', 'warn', 'info', 'error', 'error']);
  expect(lines[1]).toMatchObject({ day: '2026-10-01', kept: 2 });
  expect(lines[5]).toMatchObject({
    step: 'create_days',
    msg: expect.stringContaining('grpc-idempotency maintain') as unknown,
  });
  expect(lines[6]).toMatchObject({ msg: 'a step of retention failed' });
});
