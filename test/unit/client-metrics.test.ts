import { Registry } from 'prom-client';
import { RETRY_REASONS, STOP_REASONS } from '../../src/idempotency/index';
import { createClientMetrics } from '../../src/ops/client-metrics';

const path = '/payments.v1.PaymentsService/CreatePayment';

let registry: Registry;
let listen: ReturnType<typeof createClientMetrics>;

beforeEach(() => {
  registry = new Registry();
  listen = createClientMetrics(registry);
});

async function valuesOf(name: string): Promise<Readonly<Record<string, number>>> {
  const metric = await registry.getSingleMetric(name)?.get();
  return Object.fromEntries(
    (metric?.values ?? []).map(({ labels, value, ...rest }) => {
      const suffix = 'metricName' in rest ? String(rest.metricName).replace(name, '') : '';
      return [[...Object.values(labels), suffix].filter((part) => part !== '').join(' '), value];
    }),
  );
}

const zeroes = (reasons: readonly string[]) => Object.fromEntries(reasons.map((reason) => [reason, 0]));

test('every series is there at 0 from the start', async () => {
  expect(await valuesOf('idempotency_client_retries_total')).toEqual(zeroes(RETRY_REASONS));
  expect(await valuesOf('idempotency_client_retries_refused_total')).toEqual(zeroes(STOP_REASONS));
  expect(await valuesOf('idempotency_client_attempts')).toMatchObject({ _count: 0, _sum: 0, '1 _bucket': 0 });
});

test('retries and refusals are counted by reason', async () => {
  listen({ type: 'retry', path, reason: 'UNAVAILABLE', delayMs: 5 });
  listen({ type: 'retry', path, reason: 'REQUEST_IN_PROGRESS', delayMs: 5 });
  listen({ type: 'retry', path, reason: 'UNAVAILABLE', delayMs: 5 });
  listen({ type: 'retry_refused', path, reason: 'no_request_id' });
  const retries = { ...zeroes(RETRY_REASONS), UNAVAILABLE: 2, REQUEST_IN_PROGRESS: 1 };
  expect(await valuesOf('idempotency_client_retries_total')).toEqual(retries);
  const refused = { ...zeroes(STOP_REASONS), no_request_id: 1 };
  expect(await valuesOf('idempotency_client_retries_refused_total')).toEqual(refused);
});

test('attempts are counted per call', async () => {
  for (const attempts of [1, 1, 3, 0]) listen({ type: 'call', path, attempts, code: 0 });
  const expected = { '0 _bucket': 1, '1 _bucket': 3, '2 _bucket': 3, '3 _bucket': 4, _count: 4, _sum: 5 };
  expect(await valuesOf('idempotency_client_attempts')).toMatchObject(expected);
});

test('the budget is that of each target, and targets beyond a bound share a series', async () => {
  listen({ type: 'retry_budget', target: 'a:1', tokens: 10 });
  listen({ type: 'retry_budget', target: 'b:1', tokens: 10 });
  listen({ type: 'retry_budget', target: 'a:1', tokens: 8.5 });
  expect(await valuesOf('idempotency_client_retry_budget_tokens')).toEqual({ 'a:1': 8.5, 'b:1': 10 });
  for (let port = 1; port <= 100; port += 1) listen({ type: 'retry_budget', target: `c:${port}`, tokens: 1 });
  const values = await valuesOf('idempotency_client_retry_budget_tokens');
  expect(Object.keys(values)).toHaveLength(51);
  expect(values['other']).toBe(1);
});

test('no series has a label of a method, a key or a text', async () => {
  listen({ type: 'call', path, attempts: 1, code: 0 });
  listen({ type: 'native_retries', switchedOff: true, message: 'retries of the channel' });
  const labels = (await registry.metrics()).matchAll(/(\w+)="/g);
  expect(new Set([...labels].map(([, name]) => name))).toEqual(new Set(['le', 'reason']));
});
