import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { deferred, type Deferred } from '../support/deferred';
import { until } from '../support/until';

const MOST_ATTEMPTS = 5;
const CALLS = 30;

describe('the running attempts of a process (design 4.7)', () => {
  let service: AttemptService;
  let goOn: Deferred<void>;
  let runs: number;

  beforeAll(async () => {
    service = await startAttemptService({ server: { mostAttempts: MOST_ATTEMPTS } });
  });

  beforeEach(async () => {
    await service.database.rows('TRUNCATE payments, idempotency_record');
    goOn = deferred();
    runs = 0;
    service.handle({
      createPayment: async (request, attempt) => {
        runs += 1;
        await goOn.promise;
        return payAndComplete(request, attempt);
      },
    });
  });

  afterEach(() => goOn.resolve());

  afterAll(() => service.stop());

  const running = (count: number): Promise<void> => until(`${count} attempts run`, async () => runs >= count);

  it('are bounded also when all come at once: the others are told to come back, and their keys stay free', async () => {
    const paid = Array.from({ length: CALLS }, () => service.pay());
    await running(MOST_ATTEMPTS);
    await until('the others are refused', async () => admitted('store_unavailable') === CALLS - MOST_ATTEMPTS);
    expect(await service.database.count('idempotency_record')).toBe(MOST_ATTEMPTS);
    goOn.resolve();
    const answers = await Promise.all(paid);

    expect(answers.filter(({ code }) => code === status.OK)).toHaveLength(MOST_ATTEMPTS);
    const refused = answers.filter(({ code }) => code !== status.OK);
    expect(refused).toHaveLength(CALLS - MOST_ATTEMPTS);
    for (const answer of refused) {
      expect(answer).toMatchObject({ code: status.UNAVAILABLE, trailersOnly: true });
      expect(answer.error).toMatchObject({ reason: 'STORE_UNAVAILABLE', domain: 'idempotency.v1' });
      expect(answer.error.retryDelayMs).toBeGreaterThan(0);
    }
    expect(runs).toBe(MOST_ATTEMPTS);
    expect(await service.database.count('payments')).toBe(MOST_ATTEMPTS);
  });

  it('count although nobody waits for them any more, and make room when they end', async () => {
    const hangUp = new AbortController();
    const left = Array.from({ length: MOST_ATTEMPTS }, () => service.pay({ signal: hangUp.signal }));
    await running(MOST_ATTEMPTS);
    hangUp.abort();
    for (const { code } of await Promise.all(left)) expect(code).toBe(status.CANCELLED);

    const requestId = randomUUID();
    expect(await service.pay({ requestId })).toMatchObject({ code: status.UNAVAILABLE });
    goOn.resolve();
    await until('the others are recorded', async () => {
      return (await service.database.count("idempotency_record WHERE state = 'completed'")) === MOST_ATTEMPTS;
    });
    await until('there is room', async () => (await service.pay({ requestId })).code === status.OK);

    expect(await service.database.count('payments')).toBe(MOST_ATTEMPTS + 1);
  });

  const admitted = (outcome: string): number =>
    service.events.filter((event) => event.type === 'admitted' && event.outcome === outcome).length;
});
