import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { callUntilAnswered } from '../support/call-until-answered';
import { type CommitProxy, startCommitProxy } from '../support/commit-proxy';
import { commitRounds, watchRejections } from '../support/commit-rounds';
import { paymentRequest } from '../support/payment-requests';
import type { StockAnswer } from '../support/stock-client';

const ROUNDS = commitRounds(20);

jest.setTimeout(30_000 + ROUNDS * 1_000);

describe.each([
  ['default', {}, ROUNDS],
  ['1', { businessPoolSize: 1, storePoolSize: 1 }, Math.min(ROUNDS, 10)],
  ['2', { businessPoolSize: 2, storePoolSize: 2 }, Math.min(ROUNDS, 10)],
])('a connection that is cut at COMMIT, pools of %s (design 4.8, case K3)', (_, pools, rounds) => {
  let proxy: CommitProxy;
  let service: AttemptService;
  const rejections = watchRejections();

  beforeAll(async () => {
    service = await startAttemptService({
      pools,
      route: async ({ connectionString }) => (proxy = await startCommitProxy(connectionString)).connectionString,
    });
  });

  beforeEach(async () => {
    await service.database.rows('TRUNCATE payments, idempotency_record');
    service.handle({ createPayment: payAndComplete });
  });

  // Any of them would end a process that does not look after its promises.
  afterEach(() => expect(rejections.seen).toEqual([]));

  afterAll(async () => {
    rejections.stop();
    await service.stop();
    proxy.close();
  });

  const payUntilAnswered = (requestId: string = randomUUID()) =>
    callUntilAnswered(
      service.client,
      { method: 'CreatePayment', request: paymentRequest({ order_id: 'order-1' }), requestId },
      { everyMs: 10 },
    );

  const settled = () => service.events.flatMap((event) => (event.type === 'settled' ? [event.result] : []));

  const expectOneEffectEach = async (count: number): Promise<void> => {
    expect(await service.database.count('payments')).toBe(count);
    expect(await service.database.rows('SELECT DISTINCT state FROM idempotency_record')).toEqual([
      { state: 'completed' },
    ]);
    expect(await service.database.count('idempotency_record')).toBe(count);
  };

  const expectUsablePools = async (): Promise<void> => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => service.pay()));
    expect(answers.map(({ code }) => code)).toEqual(answers.map(() => status.OK));
  };

  it(`before the server has it: nothing is done, the key is free at once, and the retry pays, ${rounds} times`, async () => {
    const answers: StockAnswer[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      const cut = proxy.on('COMMIT', 'cut before');
      const { answer, refusals } = await payUntilAnswered();
      expect(cut.times()).toBe(1);
      expect(refusals.map(({ code, error }) => [code, error.reason, error.retryDelayMs])).toEqual([
        [status.UNAVAILABLE, 'STORE_UNAVAILABLE', 1_000],
      ]);
      answers.push(answer);
    }

    expect(
      answers.every(({ code, trailers }) => code === status.OK && trailers.get('idempotent-replayed').length === 0),
    ).toBe(true);
    expect(settled()).toEqual(Array.from({ length: rounds }, () => 'never_committed'));
    await expectOneEffectEach(rounds);
    await expectUsablePools();
  });

  it(`before its answer arrives: the caller is told the answer that was recorded, ${rounds} times`, async () => {
    for (let round = 1; round <= rounds; round += 1) {
      const requestId = randomUUID();
      const cut = proxy.on('COMMIT', 'cut after');
      const { answer, refusals } = await payUntilAnswered(requestId);
      expect(cut.times()).toBe(1);
      expect(refusals).toEqual([]);
      expect(answer.code).toBe(status.OK);
      expect(answer.trailers.get('idempotent-replayed')).toEqual([]);
      const replay = await payUntilAnswered(requestId);
      expect(replay.answer.bytes).toEqual(answer.bytes);
      expect(replay.answer.trailers.get('idempotent-replayed')).toEqual(['true']);
    }

    expect(settled()).toEqual(Array.from({ length: rounds }, () => 'committed'));
    await expectOneEffectEach(rounds);
    await expectUsablePools();
  });

  it('either way among many calls at once is one effect per key', async () => {
    const cuts = [proxy.on('COMMIT', 'cut before', 15), proxy.on('COMMIT', 'cut after', 15)];

    const answered = await Promise.all(Array.from({ length: 60 }, () => payUntilAnswered()));

    expect(cuts.map((cut) => cut.times())).toEqual([15, 15]);
    expect(answered.map(({ answer }) => answer.code)).toEqual(answered.map(() => status.OK));
    await expectOneEffectEach(60);
    await expectUsablePools();
  });
});
