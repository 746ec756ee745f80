import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { createStandInAuthorizer } from '../../src/payments/authorizer';
import { paymentRequest } from '../support/payment-requests';
import { useService } from '../support/use-service';

const NETWORK_TAKES_MS = 300;

describe('the duration of a call whose handler takes 300 ms (case M4)', () => {
  let heldMs = 0;
  const standIn = createStandInAuthorizer();
  const used = useService({
    authorizer: {
      ...standIn,
      authorize: async (...asked) => {
        const from = performance.now();
        await delay(NETWORK_TAKES_MS);
        heldMs = performance.now() - from;
        return standIn.authorize(...asked);
      },
    },
  });

  /** Sum, count and the bucket of a histogram of CreatePayment that has counted one call: (above, most]. */
  const observed = (metrics: string, name: string) => {
    const of = (suffix: string) =>
      [...metrics.matchAll(new RegExp(`^${name}_${suffix}\\{(.*grpc_method="CreatePayment".*)\\} (\\S+)$`, 'gm'))].map(
        ([, labels = '', value]) => ({ le: /le="([^"]+)"/.exec(labels)?.[1], value: Number(value) }),
      );
    const bounds = of('bucket').map(({ le, value }) => ({ le: le === '+Inf' ? Infinity : Number(le), value }));
    const at = bounds.findIndex(({ value }) => value > 0);
    const [above, most] = [bounds[at - 1]?.le, bounds[at]?.le];
    return { sum: of('sum')[0]?.value ?? NaN, count: of('count')[0]?.value, above, most };
  };

  it('is in seconds, in its bucket, and a replay adds nothing to the execution', async () => {
    const call = { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID() };
    const from = performance.now();
    expect((await used.client.call(call)).code).toBe(status.OK);
    const tookMs = performance.now() - from;

    const metrics = await used.service.metrics();
    for (const name of ['idempotency_execution_duration_seconds', 'grpc_server_handling_seconds']) {
      const { sum, count, above = NaN, most = NaN } = observed(metrics, name);
      // What the handler surely took, and what the caller has seen of it.
      expect(sum).toBeGreaterThanOrEqual(heldMs / 1_000);
      expect(sum).toBeLessThanOrEqual(tookMs / 1_000);
      expect([count, sum > above, sum <= most, most]).toEqual([1, true, true, expect.any(Number)]);
      expect(most).toBeLessThan(Infinity);
    }
    expect(heldMs).toBeGreaterThan(NETWORK_TAKES_MS * 0.8);

    expect((await used.client.call(call)).trailers.get('idempotent-replayed')).toEqual(['true']);
    const after = await used.service.metrics();
    expect(observed(after, 'idempotency_execution_duration_seconds')).toEqual(
      observed(metrics, 'idempotency_execution_duration_seconds'),
    );
    expect(observed(after, 'grpc_server_handling_seconds').count).toBe(2);
  });
});

describe('the series of a service that two hundred accounts call (case M1)', () => {
  const ACCOUNTS = Array.from({ length: 200 }, (_, at) => `account-${at}-${randomUUID()}`);
  const directory = mkdtempSync(join(tmpdir(), 'grpc-idempotency-accounts-'));
  const tokensFile = join(directory, 'accounts.json');
  const tokens = Object.fromEntries(ACCOUNTS.map((account) => [`token-of-${account}`, account]));
  writeFileSync(tokensFile, JSON.stringify({ tokens }), { mode: 0o600 });
  const used = useService({ environment: { AUTH_MODE: 'tokens', AUTH_TOKENS_FILE: tokensFile } });
  afterAll(() => rmSync(directory, { recursive: true }));

  const series = (metrics: string): readonly string[] =>
    metrics.split('\n').flatMap((line) => (/^(?!#)./.test(line) ? [line.slice(0, line.lastIndexOf(' '))] : []));

  it('are those that were there before the first call, and name none of them', async () => {
    const before = series(await used.service.metrics());
    const waiting = [...ACCOUNTS];
    const payTwice = async (account: string): Promise<void> => {
      const metadata = { authorization: `Bearer token-of-${account}` };
      const call = { method: 'CreatePayment', request: paymentRequest(), requestId: randomUUID(), metadata };
      expect((await used.client.call(call)).code).toBe(status.OK);
      expect((await used.client.call(call)).trailers.get('idempotent-replayed')).toEqual(['true']);
    };
    while (waiting.length > 0) await Promise.all(waiting.splice(0, 20).map(payTwice));

    const metrics = await used.service.metrics();
    expect(series(metrics)).toEqual(before);
    expect(ACCOUNTS.filter((account) => metrics.includes(account))).toEqual([]);
    expect(await used.database.rows('SELECT count(DISTINCT scope)::int AS scopes FROM payments')).toEqual([
      { scopes: ACCOUNTS.length },
    ]);
  });
});
