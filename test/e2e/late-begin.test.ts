import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import { type AttemptService, recordPayment, startAttemptService } from '../support/attempt-service';
import { type CommitProxy, startCommitProxy } from '../support/commit-proxy';

jest.setTimeout(60_000);

describe('the begin of an effect that stalls on the way and comes late (design 4.10)', () => {
  let proxy: CommitProxy;
  let service: AttemptService;
  beforeAll(async () => {
    service = await startAttemptService({
      policy: { leaseMs: 40_000 },
      route: async ({ connectionString }) => (proxy = await startCommitProxy(connectionString)).connectionString,
    });
  });
  afterAll(async () => {
    await service.stop();
    proxy.close();
  });

  it('does not take back the steps that were stored after it', async () => {
    const requestId = randomUUID();
    const begin = proxy.on('SET recovery_point = $4::text', 'stall before');
    const booked: number[] = [];
    let attempts = 0;
    service.handle({
      createPayment: async (request, attempt) => {
        attempts += 1;
        await attempt.effect('charge', async () => 'charged');
        await attempt.phase('book', async (tx) => {
          booked.push(attempts);
          await recordPayment(tx, request, attempt);
          return 'booked';
        });
        if (attempts === 1) {
          begin.letThrough();
          // It gives no sign of having arrived where it changes nothing, which is what is asked for.
          await delay(500);
          throw new StatusError(status.UNAVAILABLE, 'not now');
        }
        return attempt.complete(async () => ({ payment: undefined }));
      },
    });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.UNAVAILABLE });
    expect(begin.times()).toBe(1);
    expect(await service.pay({ requestId })).toMatchObject({ code: status.OK });
    expect(booked).toEqual([1]);
    expect(await service.database.count('payments')).toBe(1);
  });
});
