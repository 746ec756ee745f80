import { Counter, Histogram, type Registry } from 'prom-client';
import {
  ADMISSION_OUTCOMES,
  type MethodPolicy,
  type ServerEvent,
  type ServerEventListener,
} from '../idempotency/index';
import { GRPC_CODES, grpcCode, type MethodLabels } from './grpc-labels';

/** What the metrics need to know of a method. */
export type CountedMethod = Pick<MethodPolicy, 'service' | 'method' | 'key' | 'level'>;

const METHOD = ['grpc_service', 'grpc_method'] as const;

/** Where an event of a method ends up that was not announced: one series instead of any number (case M1). */
const OTHER: MethodLabels = { grpc_service: 'other', grpc_method: 'other' };

/** Seconds. From an insert on an idle database to a pool that is used up. */
const CLAIM_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Seconds. From a local insert to a handler that waits for others. */
const EXECUTION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Above 1/3 a lease was renewed at least once; above 1 it lived by its renewals. */
const RATIOS = [0.01, 0.05, 0.1, 0.25, 0.33, 0.5, 0.75, 1, 2, 5, 10];

/** Up to what a gRPC message holds by default. */
const BYTES = [64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];

/** Seconds. From an intent that is sent at once, over one that was stored for a while, to the oldest that are taken. */
const KEY_AGES = [0.1, 1, 10, 60, 300, 1_800, 7_200, 21_600, 43_200, 86_400, 259_200, 604_800];

const RENEWAL_RESULTS = ['renewed', 'lost', 'busy', 'failed'] as const;
const RESUME_RESULTS = ['completed', 'failed', 'overtaken'] as const;
const SETTLEMENT_RESULTS = ['committed', 'never_committed', 'lost', 'unsettled'] as const;

/**
 * The `idempotency_*` family of design 3.4, fed by the events of the library. Labels are bounded: service, method,
 * outcome, code and known clients, never a key, a scope or a text (case M1). Make them once per registry, and give the
 * listener to `createIdempotency` as its `onEvent`.
 *
 * @param policies of the methods that are served, such as `policies.all()`
 * @param clientVersions those that `createIdempotency` was given
 */
export function createIdempotencyMetrics(
  registry: Registry,
  policies: readonly CountedMethod[],
  clientVersions: readonly string[] = [],
): ServerEventListener {
  const registers = [registry];
  const counter = (name: string, help: string) => new Counter({ name, help, labelNames: METHOD, registers });
  const histogram = (name: string, help: string, buckets: number[]) =>
    new Histogram({ name, help, labelNames: METHOD, buckets, registers });
  const requests = new Counter({
    name: 'idempotency_requests_total',
    help: 'Calls of methods that take keys, by how they were received.',
    labelNames: [...METHOD, 'outcome'],
    registers,
  });
  const mismatches = new Counter({
    name: 'idempotency_mismatches_total',
    help: 'Requests that came under the key of another one, by the version of their client.',
    labelNames: [...METHOD, 'client_version'],
    registers,
  });
  const replays = new Counter({
    name: 'idempotency_replays_total',
    help: 'Replays, by the code of the recorded answer.',
    labelNames: [...METHOD, 'grpc_code'],
    registers,
  });
  const claims = histogram(
    'idempotency_claim_duration_seconds',
    'From asking for a claim to the answer.',
    CLAIM_BUCKETS,
  );
  const executions = histogram('idempotency_execution_duration_seconds', 'How long handlers ran.', EXECUTION_BUCKETS);
  const leaseUsed = histogram('idempotency_lease_used_ratio', 'Duration of handlers as a part of the lease.', RATIOS);
  const responses = histogram('idempotency_response_bytes', 'Size of the answers of attempts.', BYTES);
  const keyAges = histogram(
    'idempotency_key_age_seconds',
    'How long before their arrival dated keys say that they were made.',
    KEY_AGES,
  );
  const renewals = new Counter({
    name: 'idempotency_lease_renewals_total',
    help: 'Tries to prolong the lease of a running attempt, by what became of them.',
    labelNames: [...METHOD, 'result'],
    registers,
  });
  const settled = new Counter({
    name: 'idempotency_settled_commits_total',
    help: 'Commits whose answer was lost, by what was found out.',
    labelNames: [...METHOD, 'result'],
    registers,
  });
  const resumed = new Counter({
    name: 'idempotency_resumed_total',
    help: 'Half-finished requests that were resumed in the background, by what became of them.',
    labelNames: [...METHOD, 'result'],
    registers,
  });
  const limits = counter('idempotency_execution_limit_total', 'Attempts that ran longer than max_execution.');
  const parked = counter('idempotency_parked_total', 'Requests that were tried too often and wait for a person.');
  const takeovers = counter('idempotency_takeovers_total', 'Claims taken over after their lease.');
  const fenced = counter(
    'idempotency_fenced_total',
    'Attempts that ended because their claim was lost; only phases that they had stored before stay.',
  );
  const released = counter('idempotency_released_total', 'Claims given up, so that the key was free again.');
  const leasesEnded = counter(
    'idempotency_leases_ended_total',
    'Leases ended early, of requests that stay claimed: half finished, or running when the process ended.',
  );

  const suspects = counter(
    'idempotency_regenerated_key_suspects_total',
    'Contents that came with many keys within seconds: a client may make a new key per attempt.',
  );

  const byPath = new Map<string, MethodLabels>();
  for (const { service, method, key, level } of policies) {
    const labels = { grpc_service: service, grpc_method: method };
    // Of what ignores keys nothing is told, but the resent calls that were refused.
    const isCounted = key !== 'IGNORED' || level === 'UNKNOWN';
    if (isCounted) byPath.set(`/${service}/${method}`, labels);
    if (isCounted) requests.inc({ ...labels, outcome: 'keyless_retry' }, 0);
    if (key === 'IGNORED') continue;
    for (const outcome of ADMISSION_OUTCOMES) requests.inc({ ...labels, outcome }, 0);
    for (const client_version of [...clientVersions, 'other']) mismatches.inc({ ...labels, client_version }, 0);
    for (const code of GRPC_CODES) replays.inc({ ...labels, grpc_code: code }, 0);
    for (const result of RENEWAL_RESULTS) renewals.inc({ ...labels, result }, 0);
    for (const result of RESUME_RESULTS) resumed.inc({ ...labels, result }, 0);
    for (const result of SETTLEMENT_RESULTS) settled.inc({ ...labels, result }, 0);
    for (const metric of [claims, executions, leaseUsed, responses, keyAges]) metric.zero(labels);
    for (const metric of [takeovers, fenced, released, leasesEnded, limits, parked, suspects]) metric.inc(labels, 0);
  }

  return (event: ServerEvent) => {
    const labels = byPath.get(event.path) ?? OTHER;
    switch (event.type) {
      case 'admitted':
        requests.inc({ ...labels, outcome: event.outcome });
        if (event.outcome === 'mismatch') mismatches.inc({ ...labels, client_version: event.clientVersion ?? 'other' });
        if (event.keyAgeMs !== undefined) keyAges.observe({ ...labels }, event.keyAgeMs / 1000);
        if (event.recordedCode !== undefined) replays.inc({ ...labels, grpc_code: grpcCode(event.recordedCode) });
        return;
      case 'claim':
        return claims.observe({ ...labels }, event.durationMs / 1000);
      case 'execution':
        leaseUsed.observe({ ...labels }, event.durationMs / event.leaseMs);
        return executions.observe({ ...labels }, event.durationMs / 1000);
      case 'recorded':
      case 'too_large':
        return responses.observe({ ...labels }, event.responseBytes);
      case 'renewal':
        return renewals.inc({ ...labels, result: event.result });
      case 'settled':
        return settled.inc({ ...labels, result: event.result });
      case 'resumed':
        return resumed.inc({ ...labels, result: event.result });
      case 'regenerated_key_suspect':
        return suspects.inc({ ...labels });
      case 'parked':
        return parked.inc({ ...labels });
      case 'execution_limit':
        return limits.inc({ ...labels });
      case 'takeover':
        return takeovers.inc({ ...labels });
      case 'fenced':
        return fenced.inc({ ...labels });
      case 'released':
        return released.inc({ ...labels });
      case 'lease_ended':
        return leasesEnded.inc({ ...labels });
      case 'call':
      case 'fault':
      case 'stranded':
        // Counted by `admitted` and by the codes of grpc_server_handled_total, or of methods that have no series here.
        return;
    }
  };
}
