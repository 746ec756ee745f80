import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { newRequestId } from '../../src/idempotency/index';
import { paymentRequest } from '../support/payment-requests';
import { type OwnPostgres, startOwnPostgres } from '../support/postgres';
import { rawCall } from '../support/raw-call';
import { startTestService, type TestService } from '../support/service';
import { until } from '../support/until';
import { useService } from '../support/use-service';

/** Names and labels of all series, without their values. */
const seriesOf = (metrics: string): readonly string[] =>
  metrics
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.slice(0, line.lastIndexOf(' ')));

describe('/metrics', () => {
  const used = useService();

  it('has every series at 0 before the first call', async () => {
    const metrics = await used.service.metrics();
    const counted = metrics.split('\n').filter((line) => /^[^#].* [^0]/.test(line));
    expect(counted).toEqual([
      expect.stringMatching(/^build_info\{version="\d+\.\d+\.\d+"\} 1$/),
      // Keys of today need their day before the first call.
      expect.stringMatching(/^idempotency_days_created_total \d$/),
    ]);
    for (const outcome of ['claimed', 'replayed', 'in_progress', 'mismatch', 'missing_key', 'malformed_key']) {
      expect(metrics).toMatch(new RegExp(`^idempotency_requests_total\\{.*outcome="${outcome}"\\} 0$`, 'm'));
    }
    expect(metrics).toMatch(/^payments_created_total 0$/m);
    expect(metrics).toMatch(/^idempotency_pool_wait_seconds_count\{pool="business"\} 0$/m);
    expect(metrics).toMatch(/^grpc_server_handled_total\{.*grpc_method="CreatePayment",grpc_code="Aborted"\} 0$/m);
    expect(metrics).toMatch(/^idempotency_claim_duration_seconds_count\{.*grpc_method="CreatePayment"\} 0$/m);
  });

  // Case M1.
  it('has the same series after calls with many keys, orders, faults and unknown methods', async () => {
    const before = seriesOf(await used.service.metrics());
    const ids = Array.from({ length: 200 }, () => newRequestId());
    const waiting = [...ids];
    const codes: number[] = [];
    const payOnce = async (requestId: string, index: number): Promise<void> => {
      const change = { order_id: requestId, ...(index % 10 === 0 ? { currency: requestId } : {}) };
      const request = paymentRequest(change);
      codes.push((await used.client.call({ method: 'CreatePayment', request, requestId })).code);
    };
    while (waiting.length > 0) await Promise.all(waiting.splice(0, 20).map(payOnce));
    for (const index of Array.from({ length: 20 }).keys()) {
      const path = `/payments.v1.PaymentsService/Unknown${index}`;
      expect((await rawCall(used.service.grpcPort, path, [Buffer.of()])).code).toBe(status.UNIMPLEMENTED);
    }

    const expected = ids.map((_, index) => (index % 10 === 0 ? status.INVALID_ARGUMENT : status.OK));
    expect(codes.sort()).toEqual(expected.sort());
    expect(await used.database.count('payments')).toBe(180);
    const metrics = await used.service.metrics();
    expect(seriesOf(metrics)).toEqual(before);
    expect(ids.filter((id) => metrics.includes(id))).toEqual([]);
    expect(metrics).toMatch(/^payments_created_total 180$/m);
  });

  it('and the health service are there for standard tools', async () => {
    const check = await rawCall(used.service.grpcPort, '/grpc.health.v1.Health/Check', [Buffer.of()]);
    expect(check.code).toBe(status.OK);
    // HealthCheckResponse{status: SERVING}
    expect(check.response).toEqual(Buffer.from([0x08, 0x01]));
    const named = Buffer.concat([Buffer.from([0x0a, 28]), Buffer.from('payments.v1.PaymentsService')]);
    named[1] = named.length - 2;
    expect((await rawCall(used.service.grpcPort, '/grpc.health.v1.Health/Check', [named])).response).toEqual(
      check.response,
    );
  });
});

describe('the probes', () => {
  let postgres: OwnPostgres;
  let service: TestService;

  beforeAll(async () => {
    postgres = await startOwnPostgres();
    service = await startTestService({ connectionString: postgres.connectionString });
  });
  afterAll(async () => {
    await service.stop();
    await postgres.drop();
  });

  const probe = async (path: string): Promise<readonly [number, string]> => {
    const response = await fetch(`http://127.0.0.1:${service.opsPort}${path}`);
    return [response.status, await response.text()];
  };

  it('tell an outage of the database from one of the process', async () => {
    expect(await probe('/healthz')).toEqual([200, 'alive']);
    expect(await probe('/readyz')).toEqual([200, 'ready']);

    await postgres.stopServer();
    expect(await probe('/readyz')).toEqual([503, 'unready']);
    expect(await probe('/healthz')).toEqual([200, 'alive']);

    await postgres.startServer();
    await until('the service is ready again', async () => (await probe('/readyz'))[0] === 200);
    expect((await probe('/metrics'))[0]).toBe(200);
    expect((await probe(`/${randomUUID()}`))[0]).toBe(404);
  });
});
