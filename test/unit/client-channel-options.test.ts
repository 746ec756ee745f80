import { CHANNEL_OPTIONS, safeChannelOptions } from '../../src/idempotency/client/channel-options';
import type { ClientEvent } from '../../src/idempotency/events';

const retryPolicy = { maxAttempts: 3, retryableStatusCodes: ['UNAVAILABLE'] };
const hedgingPolicy = { maxAttempts: 2 };

function safe(config: object | undefined, own = {}, target = '127.0.0.1:1') {
  const events: ClientEvent[] = [];
  const given = config === undefined ? own : { ...own, 'grpc.service_config': JSON.stringify(config) };
  const options = safeChannelOptions(given, (event) => events.push(event), target);
  return { options, events, config: JSON.parse(options['grpc.service_config'] ?? 'null') as unknown };
}

test('without options of one’s own they are CHANNEL_OPTIONS', () => {
  expect(safeChannelOptions()).toEqual(CHANNEL_OPTIONS);
  expect(safe(undefined)).toMatchObject({ options: CHANNEL_OPTIONS, events: [] });
});

test('a service config keeps all but its retry and hedging policies, and what went is told', () => {
  const kept = { name: [{ service: 'a.B', method: 'C' }, { service: 'a.D' }], timeout: '1s' };
  const all = { name: [{}], hedgingPolicy };
  const given = { loadBalancingConfig: [{ round_robin: {} }], methodConfig: [{ ...kept, retryPolicy }, all] };
  const { config, events } = safe(given);
  expect(config).toEqual({ loadBalancingConfig: [{ round_robin: {} }], methodConfig: [kept, { name: [{}] }] });
  expect(events).toEqual([
    {
      type: 'native_retries',
      switchedOff: true,
      message:
        'retries of the channel are switched off, since they would multiply with those of the client: removed ' +
        'retryPolicy of a.B/C and a.D, hedgingPolicy of all methods from grpc.service_config',
    },
  ]);
});

test('nothing is told where nothing would have been retried', () => {
  const config = { methodConfig: [{ name: [{}], retryPolicy }] };
  expect(safe({ methodConfig: [{ name: [{}], timeout: '1s' }] }).events).toEqual([]);
  expect(safe(config, { 'grpc.enable_retries': 0 }).events).toEqual([]);
});

test('options of one’s own stay, but DNS brings no service config', () => {
  const own = {
    ...{ 'grpc.keepalive_time_ms': 1_000, 'grpc.max_reconnect_backoff_ms': 9_000 },
    ...{ 'grpc.service_config_disable_resolution': 0 },
  };
  expect(safe(undefined, own).options).toMatchObject({
    ...{ 'grpc.keepalive_time_ms': 1_000, 'grpc.max_reconnect_backoff_ms': 9_000 },
    ...{ 'grpc.service_config_disable_resolution': 1 },
  });
});

test.each<[string, 0 | undefined]>([
  ['127.0.0.1:50051', undefined],
  ['localhost:50051', undefined],
  ['payments', undefined],
  ['[::1]:50051', undefined],
  ['dns:///payments:50051', undefined],
  ['unix:/run/payments.sock', undefined],
  ['ipv4:127.0.0.1:1,127.0.0.2:1', undefined],
  ['xds:///payments', 0],
  ['consul:payments', 0],
])('of the target %s, retries of the channel are %s', (target, expected) => {
  expect(safe(undefined, { 'grpc.enable_retries': 1 }, target).options['grpc.enable_retries']).toBe(expected ?? 1);
});

test('a service config that is no JSON is refused', () => {
  expect(() => safeChannelOptions({ 'grpc.service_config': '{' })).toThrow(/^channelOptions: grpc\.service_config: /);
});
