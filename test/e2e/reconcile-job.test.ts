import { FINDING_KINDS } from '../../src/reconciliation/findings';
import { startTestService } from '../support/service';
import { type Reconciled, startReconciled } from '../support/reconciliation';
import { until } from '../support/until';

// Three services on one busy database.
jest.setTimeout(60_000);

let used: Reconciled;

beforeAll(async () => (used = await startReconciled()));
afterAll(() => used.stop());

it('a service compares the books from time to time where it is told to, tells of it, and repairs nothing', async () => {
  await used.pay();
  const lost = await used.pay();
  await used.database.rows('DELETE FROM payments WHERE payment_id = $1', [lost.paymentId]);
  await used.age();
  const { connectionString } = used.database;
  const environment = { CARD_NETWORK_ADDRESS: used.network.address, RECONCILE_INTERVAL_MS: '50' };
  const service = await startTestService({ connectionString, useNetwork: true, environment });
  try {
    await until('the books were compared', async () =>
      (await service.metrics()).includes('reconciliation_findings{kind="orphaned_charge"} 1'),
    );
    expect(await service.metrics()).toContain('reconciliation_agreed_payments 1');
    const line = service.lines.find(({ found }) => found !== undefined);
    expect(line).toMatchObject({ level: 'error', found: { orphaned_charge: 1 } });
    expect((await used.refunds()).count).toBe(0);
  } finally {
    await service.stop();
  }
});

it('without a setting it does not, and its series are there all the same, at 0 (case M2)', async () => {
  const { connectionString } = used.database;
  const environment = { CARD_NETWORK_ADDRESS: used.network.address };
  const service = await startTestService({ connectionString, useNetwork: true, environment });
  try {
    const lines = (await service.metrics()).split('\n').filter((line) => line.startsWith('reconciliation_'));
    expect(lines).toContain('reconciliation_last_run_timestamp_seconds 0');
    for (const kind of FINDING_KINDS) {
      expect(lines).toContain(`reconciliation_findings{kind="${kind}"} 0`);
      expect(lines).toContain(`reconciliation_settled_total{kind="${kind}",outcome="repaired"} 0`);
    }
    expect(lines.filter((line) => !line.endsWith(' 0'))).toEqual([]);
  } finally {
    await service.stop();
  }
});
