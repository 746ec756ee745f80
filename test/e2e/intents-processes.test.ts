import { type IntentCaller, type IntentCallerOptions, startIntentCaller } from '../support/intent-caller';
import { type CallersDatabase, createCallersDatabase, dateOfKey } from '../support/intents';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { type ServiceProcess, startServiceProcess } from '../support/service-process';
import { until } from '../support/until';

// Processes of their own start slowly on a busy machine.
jest.setTimeout(90_000);

let callers: CallersDatabase;
let started: IntentCaller[] = [];

beforeAll(async () => {
  callers = await createCallersDatabase();
});

afterEach(async () => {
  await Promise.all(started.map((caller) => caller.kill()));
  started = [];
});

afterAll(() => callers.close());

async function start(options: Partial<IntentCallerOptions> = {}): Promise<IntentCaller> {
  const { connectionString } = callers.database;
  const caller = await startIntentCaller({ connectionString, ...options });
  started.push(caller);
  return caller;
}

describe('a caller killed after its key was made and before it had the answer', () => {
  let payments: TestDatabase;
  let service: ServiceProcess;

  beforeEach(async () => {
    payments = await createTestDatabase();
    service = await startServiceProcess({ connectionString: payments.connectionString, authorizerWaits: true });
    // One live payment per order would hide a second key.
    await payments.rows('DROP INDEX payments_one_live_per_order');
  });

  afterEach(async () => {
    service.kill('SIGKILL');
    await service.exited;
    await payments.drop();
  });

  const expectOnePayment = async ({ paymentId }: { readonly paymentId: string }, requestId: string) => {
    const rows = await payments.rows('SELECT payment_id, request_id FROM payments');
    expect(rows).toEqual([{ payment_id: paymentId, request_id: requestId }]);
    expect(service.timesAsked()).toBe(1);
  };
  const keyOf = async (draftId: string): Promise<string> => {
    const found = await callers.intents().requestIdFor('pay', draftId);
    expect(found.kind).toBe('usable');
    return found.requestId;
  };

  it('is told the recorded answer when it comes back after the payment', async () => {
    const killed = await start({ grpcPort: service.grpcPort });
    const unanswered = killed.pay('paid');
    await Promise.race([service.authorizerAsked(1), unanswered]);
    await killed.kill();
    await expect(unanswered).rejects.toThrow('ended before it was paid');
    const requestId = await keyOf('paid');
    service.proceed();
    await until('it is paid', async () => (await payments.count('payments')) === 1);

    const restarted = await start({ grpcPort: service.grpcPort });
    const answer = await restarted.pay('paid');
    expect(answer).toMatchObject({ requestId, replayed: true });
    await expectOnePayment(answer, requestId);
  });

  it('waits for the answer of its first attempt when it comes back before the payment', async () => {
    const killed = await start({ grpcPort: service.grpcPort });
    const unanswered = killed.pay('paying');
    await Promise.race([service.authorizerAsked(1), unanswered]);
    await killed.kill();
    await expect(unanswered).rejects.toThrow('ended before it was paid');
    const requestId = await keyOf('paying');

    const restarted = await start({ grpcPort: service.grpcPort });
    const answered = restarted.pay('paying');
    const metrics = async () => (await fetch(`http://127.0.0.1:${service.opsPort}/metrics`)).text();
    await until('it was asked to come again', async () => /outcome="in_progress"\} [1-9]/.test(await metrics()));
    service.proceed();
    const answer = await answered;
    expect(answer).toMatchObject({ requestId, replayed: true });
    await expectOnePayment(answer, requestId);
  });

  it('sends the key that it had made when nothing was sent before', async () => {
    const killed = await start();
    const [requestId = ''] = await killed.find('unsent', 1);
    await killed.kill();
    service.proceed();

    const restarted = await start({ grpcPort: service.grpcPort });
    const answer = await restarted.pay('unsent');
    expect(answer).toMatchObject({ requestId, replayed: false });
    await expectOnePayment(answer, requestId);
  });
});

describe('two processes that make or find one key 50 times each, at once', () => {
  const rounds = 20;

  afterEach(async () => {
    await setIsolation('read committed');
  });

  it.each([
    [1, 'read committed'],
    [2, 'read committed'],
    [2, 'repeatable read'],
  ])('all get the same, with pools of %s, %s', async (poolSize, isolation) => {
    await setIsolation(isolation);
    const [first, second] = await Promise.all([start({ poolSize }), start({ poolSize })]);
    for (let round = 1; round <= rounds; round += 1) {
      const draftId = `race-${poolSize}-${isolation}-${round}`;
      const requestIds = (await Promise.all([first.find(draftId, 50), second.find(draftId, 50)])).flat();
      expect(requestIds).toHaveLength(100);
      expect(new Set(requestIds).size).toBe(1);
    }
    const raced = `idempotency_intent WHERE draft_id LIKE 'race-${poolSize}-${isolation}-%'`;
    expect(await callers.database.count(raced)).toBe(rounds);
  });

  async function setIsolation(isolation: string): Promise<void> {
    const name = new URL(callers.database.connectionString).pathname.slice(1);
    await callers.database.rows(`ALTER DATABASE ${name} SET default_transaction_isolation = '${isolation}'`);
  }
});

describe('a process whose clock is wrong', () => {
  it.each([
    ['two days behind', -48 * 3_600_000],
    ['an hour ahead', 3_600_000],
  ])('%s, makes keys that servers take, and finds them usable', async (_, clockAheadMs) => {
    const caller = await start({ clockAheadMs });
    const draftId = `clock-${clockAheadMs}`;
    const [requestId = ''] = await caller.find(draftId, 1);
    const [now] = await callers.database.rows<{ ms: number }>(
      'SELECT (extract(epoch FROM now()) * 1000)::float8 AS ms',
    );
    expect(Math.abs((now?.ms ?? NaN) - dateOfKey(requestId))).toBeLessThan(60_000);
    expect(await callers.intents().requestIdFor('pay', draftId)).toMatchObject({ kind: 'usable', requestId });
  });
});
