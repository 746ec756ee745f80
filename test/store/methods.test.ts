import { connect } from '../../src/database/connect';
import { registerMethods } from '../../src/idempotency/store/methods';
import { policyOf } from '../support/claim-requests';
import { openTestStore, type TestStore } from '../support/store';

describe('the methods that records refer to', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await openTestStore([]);
  });

  afterAll(() => opened.close());

  const promised = (path: string) =>
    opened.database.rows<{ retention: string; age: string }>(
      'SELECT retention_ms::text AS retention, max_key_age_ms::text AS age FROM idempotency_method WHERE path = $1',
      [path],
    );

  it('get one id each, though several processes register them at once', async () => {
    const { connectionString } = opened.database;
    const policies = ['CreatePayment', 'RefundPayment', 'UpdatePayment'].map((method) => policyOf(method));
    const processes = Array.from({ length: 4 }, () => connect({ connectionString }));

    const registered = await Promise.all(processes.map(({ store }) => registerMethods(store, policies)));

    expect(new Set(registered.map((ids) => JSON.stringify([...ids].sort())))).toHaveProperty('size', 1);
    expect(new Set(registered[0]?.values())).toHaveProperty('size', 3);
    expect(await opened.database.count('idempotency_method')).toBe(3);
    await Promise.all(processes.map((process) => process.close()));
  });

  it('keep the longest promise that was ever made, each setting for itself', async () => {
    const { store } = opened.connections;
    const policy = policyOf('CancelPayment', { retentionMs: 2_000, maxKeyAgeMs: 1_000 });
    const neighbour = policyOf('UpdatePayment', { retentionMs: 5_000, maxKeyAgeMs: 5_000 });
    const neighbours = await registerMethods(store, [policy, neighbour]).then(() => promised(neighbour.path));

    await registerMethods(store, [{ ...policy, retentionMs: 1_500, maxKeyAgeMs: 500 }]);
    expect(await promised(policy.path)).toEqual([{ retention: '2000', age: '1000' }]);
    await registerMethods(store, [{ ...policy, retentionMs: 3_000, maxKeyAgeMs: 500 }]);
    expect(await promised(policy.path)).toEqual([{ retention: '3000', age: '1000' }]);
    await registerMethods(store, [{ ...policy, retentionMs: 1_500, maxKeyAgeMs: 4_000 }]);
    expect(await promised(policy.path)).toEqual([{ retention: '3000', age: '4000' }]);

    expect(await promised(neighbour.path)).toEqual(neighbours);
  });

  it('are known to a process that does not serve them', async () => {
    const { store } = opened.connections;
    const ids = await registerMethods(store, [policyOf('CancelPayment')]);

    expect((await registerMethods(store, [])).get('/payments.v1.PaymentsService/CancelPayment')).toBe(
      ids.get('/payments.v1.PaymentsService/CancelPayment'),
    );
  });
});
