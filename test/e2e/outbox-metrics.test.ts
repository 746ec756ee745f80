import { Registry } from 'prom-client';
import { createLogger } from '../../src/ops/logger';
import { logRelayEvents } from '../../src/ops/outbox-log';
import { createOutboxMetrics } from '../../src/ops/outbox-metrics';
import type { RelayEvent } from '../../src/outbox/relay-events';

const NAMES = { eventId: '01900000-0000-7000-8000-000000000000', eventType: 'receipts', attempts: 3 };
const EVENTS: readonly RelayEvent[] = [
  { type: 'delivered', ...NAMES },
  { type: 'delivered', ...NAMES },
  { type: 'failed', ...NAMES, error: new Error('away') },
  { type: 'parked', ...NAMES, reason: 'attempts', error: new Error('away') },
  { type: 'fenced', ...NAMES },
  { type: 'purged', events: 7 },
  { type: 'observed', observation: { pending: 5, parked: 12, oldestAgeMs: 1_500 } },
  { type: 'fault', step: 'take', error: new Error('no database') },
];
const COUNTED = [
  'outbox_pending_events 5',
  'outbox_parked_events 12',
  'outbox_oldest_event_age_seconds 1.5',
  'outbox_delivered_total 2',
  'outbox_failed_total 1',
  'outbox_parkings_total 1',
  'outbox_fenced_total 1',
  'outbox_purged_total 7',
  'outbox_faults_total 1',
  'inbox_duplicates_total 1',
];

it('what a relay and an inbox tell is counted, from zero, without labels (cases M1, M2)', async () => {
  const registry = new Registry();
  const { onRelayEvent, onDuplicate } = createOutboxMetrics(registry);
  const atStart = await registry.metrics();
  for (const line of COUNTED) expect(atStart.split('\n')).toContain(line.replace(/ [\d.]+$/, ' 0'));

  for (const event of EVENTS) onRelayEvent(event);
  onDuplicate();

  const lines = (await registry.metrics()).split('\n');
  for (const line of COUNTED) expect(lines).toContain(line);
});

it('what somebody should look at is logged, and nothing else', () => {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };
  const onEvent = logRelayEvents(createLogger({ level: 'debug', destination }));
  for (const event of EVENTS) onEvent(event);
  expect(lines.map(({ level, msg }) => `${String(level)}: ${String(msg)}`)).toEqual([
    'warn: an event could not be delivered yet',
    'error: an event waits for a person, and holds back those of its aggregate: grpc-idempotency outbox',
    'warn: an outcome came after the lease; the event is delivered once more',
    'error: a step of the relay failed',
  ]);
  expect(lines[1]).toMatchObject({ ...NAMES, reason: 'attempts', err: expect.stringContaining('away') as string });
});
