import { Counter, Gauge, type Registry } from 'prom-client';
import type { RetentionEventListener } from '../idempotency/index';

const STEPS = ['create_days', 'drop_days', 'purge_undated_records', 'observe'] as const;
const STATES = ['claimed', 'completed', 'parked', 'expired'] as const;

/**
 * What retention did in this process, and how the records stood at its last look (design 3.4). Nothing is counted when
 * the metrics are read: that would cost more the more there is to keep.
 */
export function createRetentionMetrics(registry: Registry): RetentionEventListener {
  const registers = [registry];
  const counter = (name: string, help: string) => new Counter({ name, help, registers });
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers });
  const created = counter('idempotency_days_created_total', 'Days of records that this process created.');
  const dropped = counter('idempotency_days_dropped_total', 'Days of records that this process dropped.');
  const heldBack = counter('idempotency_days_held_back_total', 'Days that were due while an attempt ran in them.');
  const postponed = counter('idempotency_days_postponed_total', 'Days that were due while transactions were open.');
  const purged = counter('idempotency_purged_records_total', 'Undated records that this process deleted.');
  const faults = new Counter({
    name: 'idempotency_retention_faults_total',
    help: 'Steps of retention that failed.',
    labelNames: ['step'],
    registers,
  });
  const partitions = gauge('idempotency_partitions', 'Tables that hold records, at the last look.');
  const oldest = gauge(
    'idempotency_oldest_claim_age_seconds',
    'Age of the oldest claim without an answer that the last look saw.',
  );
  const kept = gauge('idempotency_records_kept', 'Records that were parked or half done when their day was dropped.');
  const records = new Gauge({
    name: 'idempotency_records',
    help: 'Records by their state at the last look; estimated where there are many.',
    labelNames: ['state'],
    registers,
  });
  for (const step of STEPS) faults.inc({ step }, 0);
  for (const state of STATES) records.set({ state }, 0);

  return (event) => {
    switch (event.type) {
      case 'day_created':
        return created.inc();
      case 'day_dropped':
        return dropped.inc();
      case 'day_held_back':
        return heldBack.inc();
      case 'day_postponed':
        return postponed.inc();
      case 'purged':
        return purged.inc(event.records);
      case 'fault':
        return faults.inc({ step: event.step });
      case 'observed': {
        const { observation } = event;
        partitions.set(observation.partitions);
        oldest.set(observation.oldestClaimAgeMs / 1000);
        kept.set(observation.kept);
        for (const state of STATES) records.set({ state }, observation.records[state] ?? 0);
        return;
      }
    }
  };
}
