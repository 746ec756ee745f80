import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { callUntilAnswered } from '../support/call-until-answered';
import { type CommitProxy, startCommitProxy } from '../support/commit-proxy';
import { commitRounds, watchRejections } from '../support/commit-rounds';
import { paymentRequest } from '../support/payment-requests';
import { until } from '../support/until';

const LEASE_MS = 3_000;
/** The wait for the answer, then the settlement behind whatever the server still holds; with room for a busy machine. */
const SOON_MS = 2 * LEASE_MS + 3_000;
/** As many as the business pool has connections. */
const KEYS = 10;
const ROUNDS = commitRounds(KEYS);

jest.setTimeout(60_000 + ROUNDS * 1_500);

describe('a connection that stalls at COMMIT (design 4.8, case K3)', () => {
  let proxy: CommitProxy;
  let service: AttemptService;
  const rejections = watchRejections();

  beforeEach(async () => {
    service = await startAttemptService({
      policy: { leaseMs: LEASE_MS },
      route: async ({ connectionString }) => (proxy = await startCommitProxy(connectionString)).connectionString,
    });
    service.handle({ createPayment: payAndComplete });
  });

  afterEach(async () => {
    await service.stop();
    proxy.close();
    // Any of them would end a process that does not look after its promises.
    expect(rejections.seen).toEqual([]);
  });

  afterAll(() => rejections.stop());

  const pay = (requestId: string) =>
    callUntilAnswered(service.client, {
      ...{ method: 'CreatePayment', request: paymentRequest({ order_id: 'order-1' }), requestId },
    });

  const settled = () => service.events.flatMap((event) => (event.type === 'settled' ? [event.result] : []));

  const expectOneEffectEach = async (count: number): Promise<void> => {
    expect(await service.database.count('payments')).toBe(count);
    expect(await service.database.count(`idempotency_record WHERE state = 'completed'`)).toBe(count);
    expect(await service.database.count('idempotency_record')).toBe(count);
  };

  const expectUsablePool = async (): Promise<void> => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => service.pay()));
    expect(answers.map(({ code }) => code)).toEqual(answers.map(() => status.OK));
  };

  it('before the server has it: the outcome is settled, and a COMMIT that comes late changes nothing', async () => {
    const requestId = randomUUID();
    const stall = proxy.on('COMMIT', 'stall before');
    const startedAt = performance.now();
    const first = service.pay({ requestId });
    await stall.happened();
    // Nobody waits for the row in its hands.
    const askedAt = performance.now();
    expect((await service.pay({ requestId })).error).toMatchObject({ reason: 'REQUEST_IN_PROGRESS' });
    expect(performance.now() - askedAt).toBeLessThan(LEASE_MS);

    expect(await first).toMatchObject({
      code: status.UNAVAILABLE,
      error: { reason: 'STORE_UNAVAILABLE', retryDelayMs: 1_000 },
    });

    expect(performance.now() - startedAt).toBeLessThan(SOON_MS);
    expect(settled()).toEqual(['never_committed']);
    const { answer } = await pay(requestId);
    expect(answer.code).toBe(status.OK);
    expect(answer.trailers.get('idempotent-replayed')).toEqual([]);
    stall.letThrough();
    await expectUsablePool();
    expect((await pay(requestId)).answer.bytes).toEqual(answer.bytes);
    await expectOneEffectEach(21);
  });

  it('before its answer arrives: the caller is told the recorded answer without it', async () => {
    const requestId = randomUUID();
    const stall = proxy.on('COMMIT', 'stall after');
    const startedAt = performance.now();

    const answer = await service.pay({ requestId });

    expect(stall.times()).toBe(1);
    expect(answer).toMatchObject({ code: status.OK, response: { payment: { order_id: 'order-1' } } });
    expect(performance.now() - startedAt).toBeLessThan(SOON_MS);
    expect(settled()).toEqual(['committed']);
    expect((await pay(requestId)).answer.bytes).toEqual(answer.bytes);
    stall.letThrough();
    await expectUsablePool();
    await expectOneEffectEach(21);
  });

  it.each(['stall before', 'stall after'] as const)(
    `of many keys at once, %s it, is one effect per key, ${ROUNDS} times`,
    async (fault) => {
      for (let done = 0; done < ROUNDS;) {
        const keys = Math.min(KEYS, ROUNDS - done);
        const stall = proxy.on('COMMIT', fault, keys);
        const answered = Array.from({ length: keys }, () => pay(randomUUID()));
        await stall.happened(keys);
        done += keys;
        const settledByNow = done;
        await until('all outcomes are settled', () => Promise.resolve(settled().length === settledByNow));
        stall.letThrough();

        const codes = (await Promise.all(answered)).map(({ answer }) => answer.code);
        expect(codes).toEqual(codes.map(() => status.OK));
      }

      expect(new Set(settled())).toEqual(new Set([fault === 'stall before' ? 'never_committed' : 'committed']));
      await expectUsablePool();
      await expectOneEffectEach(ROUNDS + 20);
    },
  );

  it('with everything else is not settled in time: both outcomes are left to the lease, and later told right', async () => {
    const [lost, done] = [randomUUID(), randomUUID()];
    const before = proxy.on('COMMIT', 'stall before');
    const first = service.pay({ requestId: lost });
    await before.happened();
    const after = proxy.on('COMMIT', 'stall after');
    const second = service.pay({ requestId: done });
    await after.happened();
    const unfreeze = proxy.freeze();

    const answers = await Promise.all([first, second]);

    for (const answer of answers) {
      expect(answer).toMatchObject({
        code: status.UNAVAILABLE,
        error: { reason: 'STORE_UNAVAILABLE', retryDelayMs: 1_000 },
      });
    }
    expect(settled()).toEqual(['unsettled', 'unsettled']);
    expect(service.events.filter(({ type }) => type === 'released')).toEqual([]);
    unfreeze();
    before.letThrough();
    after.letThrough();
    const [repaid, replayed] = await Promise.all([pay(lost), pay(done)]);
    expect(repaid.answer.code).toBe(status.OK);
    expect(replayed.answer.code).toBe(status.OK);
    expect(replayed.answer.trailers.get('idempotent-replayed')).toEqual(['true']);
    await expectUsablePool();
    await expectOneEffectEach(22);
  });
});

describe('a connection that stalls at COMMIT for ever, in a pool of one (design 4.8, case K3)', () => {
  it.each([
    ['stall before', status.UNAVAILABLE],
    ['stall after', status.OK],
  ] as const)('%s it, is given up after five seconds, however long the lease is', async (fault, code) => {
    let proxy: CommitProxy | undefined;
    const service = await startAttemptService({
      ...{ policy: { leaseMs: 60_000 }, pools: { businessPoolSize: 1, storePoolSize: 1 } },
      route: async ({ connectionString }) => (proxy = await startCommitProxy(connectionString)).connectionString,
    });
    try {
      service.handle({ createPayment: payAndComplete });
      const requestId = randomUUID();
      const stall = proxy?.on('COMMIT', fault);
      const startedAt = performance.now();

      expect((await service.pay({ requestId })).code).toBe(code);

      expect(stall?.times()).toBe(1);
      expect(performance.now() - startedAt).toBeLessThan(10_000);
      const keys = [requestId, ...Array.from({ length: 20 }, () => randomUUID())];
      const answers = await Promise.all(keys.map((key) => service.pay({ requestId: key })));
      expect(answers.map((answer) => answer.code)).toEqual(keys.map(() => status.OK));
      expect(await service.database.count('payments')).toBe(21);
    } finally {
      await service.stop();
      proxy?.close();
    }
  });
});
