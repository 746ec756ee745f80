import { ADMISSION_OUTCOMES, type ServerEvent } from '../../src/idempotency/index';
import { createMetrics, type Metrics } from '../../src/ops/metrics';

const SERVICE = 'payments.v1.PaymentsService';
const CREATE = `/${SERVICE}/CreatePayment`;
const CREATE_LABELS = `grpc_service="${SERVICE}",grpc_method="CreatePayment"`;

const POLICIES = [
  { service: SERVICE, method: 'CreatePayment', key: 'REQUIRED', level: 'UNKNOWN' },
  { service: SERVICE, method: 'UpdatePayment', key: 'OPTIONAL', level: 'IDEMPOTENT' },
  { service: SERVICE, method: 'GetPayment', key: 'IGNORED', level: 'NO_SIDE_EFFECTS' },
] as const;

let metrics: Metrics;

beforeEach(() => {
  metrics = createMetrics({ version: '1.2.3', policies: POLICIES });
});

/** The value of one series, undefined where it does not exist. */
async function value(series: string): Promise<number | undefined> {
  const lines = (await metrics.registry.metrics()).split('\n');
  const line = lines.find((candidate) => candidate.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

/** Every series with its labels. */
async function series(): Promise<string[]> {
  const lines = (await metrics.registry.metrics()).split('\n');
  return lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.slice(0, line.lastIndexOf(' ')));
}

test('every outcome of every method that takes keys is at 0 from the start (case M2)', async () => {
  for (const method of ['CreatePayment', 'UpdatePayment']) {
    for (const outcome of ADMISSION_OUTCOMES) {
      const labels = `grpc_service="${SERVICE}",grpc_method="${method}"`;
      expect(await value(`idempotency_requests_total{${labels},outcome="${outcome}"}`)).toBe(0);
    }
  }
  expect(await value(`idempotency_replays_total{${CREATE_LABELS},grpc_code="Canceled"}`)).toBe(0);
  expect(await value(`idempotency_claim_duration_seconds_count{${CREATE_LABELS}}`)).toBe(0);
  expect(await value(`idempotency_execution_duration_seconds_count{${CREATE_LABELS}}`)).toBe(0);
  expect(await value(`idempotency_takeovers_total{${CREATE_LABELS}}`)).toBe(0);
  expect(await value(`idempotency_fenced_total{${CREATE_LABELS}}`)).toBe(0);
  expect(await value(`idempotency_released_total{${CREATE_LABELS}}`)).toBe(0);
  expect(await value(`idempotency_leases_ended_total{${CREATE_LABELS}}`)).toBe(0);
  expect(await value('payments_created_total')).toBe(0);
  expect(await value('build_info{version="1.2.3"}')).toBe(1);
});

test('a method that takes no key has no series', async () => {
  expect(await metrics.registry.metrics()).not.toContain('GetPayment');
});

test.each(ADMISSION_OUTCOMES)('a call received as %s counts as that and nothing else', async (outcome) => {
  metrics.onServerEvent({ type: 'admitted', path: CREATE, outcome });
  for (const other of ADMISSION_OUTCOMES) {
    const counted = await value(`idempotency_requests_total{${CREATE_LABELS},outcome="${other}"}`);
    expect(counted).toBe(other === outcome ? 1 : 0);
  }
  const replays = (await series()).filter((one) => one.startsWith(`idempotency_replays_total{${CREATE_LABELS}`));
  for (const replay of replays) expect(await value(replay)).toBe(0);
});

test('replays count by the recorded code too', async () => {
  metrics.onServerEvent({ type: 'admitted', path: CREATE, outcome: 'replayed', recordedCode: 0 });
  metrics.onServerEvent({ type: 'admitted', path: CREATE, outcome: 'replayed', recordedCode: 9 });
  expect(await value(`idempotency_replays_total{${CREATE_LABELS},grpc_code="OK"}`)).toBe(1);
  expect(await value(`idempotency_replays_total{${CREATE_LABELS},grpc_code="FailedPrecondition"}`)).toBe(1);
  expect(await value(`idempotency_requests_total{${CREATE_LABELS},outcome="replayed"}`)).toBe(2);
});

test.each(['completed', 'failed', 'overtaken'] as const)('a resumed request counts as %s', async (result) => {
  const call = { scope: 'account-1', requestId: 'key', code: 0, attempt: 2, durationMs: 1, published: {} };
  metrics.onServerEvent({ type: 'resumed', path: CREATE, result, ...call });
  for (const other of ['completed', 'failed', 'overtaken']) {
    const counted = await value(`idempotency_resumed_total{${CREATE_LABELS},result="${other}"}`);
    expect(counted).toBe(other === result ? 1 : 0);
  }
});

test.each([
  ['takeover', 'idempotency_takeovers_total'],
  ['fenced', 'idempotency_fenced_total'],
  ['released', 'idempotency_released_total'],
  ['lease_ended', 'idempotency_leases_ended_total'],
] as const)('%s is counted by %s alone', async (type, name) => {
  metrics.onServerEvent({ type, path: CREATE });
  for (const counter of ['takeovers', 'fenced', 'released', 'leases_ended'].map((one) => `idempotency_${one}_total`)) {
    expect(await value(`${counter}{${CREATE_LABELS}}`)).toBe(counter === name ? 1 : 0);
  }
});

test.each([
  ['claim', 'idempotency_claim_duration_seconds', 0.4, 0.0005],
  ['claim', 'idempotency_claim_duration_seconds', 8_000, 10],
  ['execution', 'idempotency_execution_duration_seconds', 5, 0.005],
  ['execution', 'idempotency_execution_duration_seconds', 300, 0.5],
  ['execution', 'idempotency_execution_duration_seconds', 3_000, 5],
  ['execution', 'idempotency_execution_duration_seconds', 20_000, 30],
] as const)('%s goes into %s: %d ms within %d s and not less (case M4)', async (type, name, durationMs, bucket) => {
  metrics.onServerEvent({ type, path: CREATE, durationMs, leaseMs: 30_000 });
  const buckets = (await series()).filter((one) => one.startsWith(`${name}_bucket`) && one.includes('CreatePayment'));
  const filled: string[] = [];
  for (const one of buckets) if ((await value(one)) === 1) filled.push(one);
  expect(filled[0]).toContain(`le="${bucket}"`);
  expect(await value(`${name}_sum{${CREATE_LABELS}}`)).toBeCloseTo(durationMs / 1000, 6);
});

test('a created payment is counted', async () => {
  metrics.onPaymentCreated();
  metrics.onPaymentCreated();
  expect(await value('payments_created_total')).toBe(2);
});

test('keys, scopes, texts and unheard-of methods add no series beyond a fixed few (case M1)', async () => {
  const before = await series();
  for (let index = 0; index < 500; index += 1) {
    const path = `/random.Service${index}/Method${index}`;
    const events: ServerEvent[] = [
      { type: 'admitted', path, outcome: 'claimed', recordedCode: 1_000 + index },
      { type: 'claim', path, durationMs: index },
      { type: 'fenced', path },
      { type: 'fault', path, what: `what ${index}`, error: new Error(`message ${index}`) },
      {
        type: 'call',
        path: CREATE,
        requestId: `key-${index}`,
        scope: `tenant-${index}`,
        outcome: 'claimed',
        code: 0,
        durationMs: 1,
        published: { orderId: `order-${index}` },
      },
    ];
    for (const event of events) metrics.onServerEvent(event);
  }
  const added = (await series()).filter((one) => !before.includes(one));
  expect(added.every((one) => one.includes('grpc_service="other",grpc_method="other"'))).toBe(true);
  // One outcome, one code, one fence, and one histogram of 14 buckets, +Inf, sum and count.
  expect(added).toHaveLength(1 + 1 + 1 + 17);
  expect(await metrics.registry.metrics()).not.toMatch(/key-|tenant-|order-|message |random/);
});

test('a mismatch is counted by its client, and one that is not known as any other', async () => {
  const counted = createMetrics({ version: '1.2.3', policies: POLICIES, clientVersions: ['shop/1.4.2'] });
  for (const clientVersion of ['shop/1.4.2', 'shop/1.4.2', 'other']) {
    counted.onServerEvent({ type: 'admitted', path: CREATE, outcome: 'mismatch', clientVersion });
  }
  const text = await counted.registry.metrics();
  expect(text).toContain(`idempotency_mismatches_total{${CREATE_LABELS},client_version="shop/1.4.2"} 2\n`);
  expect(text).toContain(`idempotency_mismatches_total{${CREATE_LABELS},client_version="other"} 1\n`);
});

test('of a method of unknown level that takes no key, resent calls are counted alone', async () => {
  const policy = { service: SERVICE, method: 'Wipe', key: 'IGNORED', level: 'UNKNOWN' } as const;
  const { registry, onServerEvent } = createMetrics({ version: '1.2.3', policies: [policy] });
  const wipe = { grpc_service: SERVICE, grpc_method: 'Wipe' };
  onServerEvent({ type: 'admitted', path: `/${SERVICE}/Wipe`, outcome: 'keyless_retry' });
  const series = (await registry.metrics()).split('\n').filter((line) => line.includes(wipe.grpc_method));
  expect(series).toEqual([
    `idempotency_requests_total{grpc_service="${SERVICE}",grpc_method="Wipe",outcome="keyless_retry"} 1`,
  ]);
});

test('two processes in one, such as two servers of a test, do not share a number', async () => {
  const other = createMetrics({ version: '1.2.3', policies: POLICIES });
  other.onPaymentCreated();
  expect(await value('payments_created_total')).toBe(0);
});
