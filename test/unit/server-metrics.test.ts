import { Registry } from 'prom-client';
import { loadPolicies } from '../../src/idempotency/index';
import { createIdempotencyMetrics, createRetentionMetrics } from '../../src/ops/server-metrics';
import { foreignDescriptorSet } from '../support/foreign-service';

test('a service of others counts its calls and its retention, all that is to be alerted on from 0 on', async () => {
  const registry = new Registry();
  const onEvent = createIdempotencyMetrics(registry, loadPolicies(foreignDescriptorSet()).all());
  const onRetentionEvent = createRetentionMetrics(registry);
  const shelf = 'grpc_service="library.v1.ShelfService",grpc_method="PutBook"';
  const before = await registry.metrics();
  expect(before).toContain(`idempotency_parked_total{${shelf}} 0`);
  expect(before).toContain(`idempotency_regenerated_key_suspects_total{${shelf}} 0`);
  expect(before).toContain('idempotency_retention_faults_total{step="drop_days"} 0');
  expect(before).toMatch(/^idempotency_records_kept 0$/m);

  onEvent({ type: 'parked', path: '/library.v1.ShelfService/PutBook', requestId: 'key' });
  onRetentionEvent({ type: 'fault', step: 'drop_days', error: new Error('down'), missingRight: false });

  const after = await registry.metrics();
  expect(after).toContain(`idempotency_parked_total{${shelf}} 1`);
  expect(after).toContain('idempotency_retention_faults_total{step="drop_days"} 1');
});
