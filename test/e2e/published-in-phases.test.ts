import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import { type AttemptService, recordPayment, startAttemptService } from '../support/attempt-service';

describe('what is published inside a phase (design 4.8, 4.10)', () => {
  let service: AttemptService;
  beforeAll(async () => {
    service = await startAttemptService({
      policy: { recording: 'COMPACT' },
      rebuildPayment: async () => ({ payment: undefined }),
    });
  });
  afterAll(() => service.stop());

  it('is told to duplicates once the phase has committed', async () => {
    const requestId = randomUUID();
    let told: unknown;
    service.handle({
      createPayment: async (request, attempt) => {
        await attempt.phase('draft', async () => attempt.publish({ resource: 'payments/1' }));
        await attempt.effect('charge', async () => {
          told = Object.fromEntries((await service.pay({ requestId })).error.metadata);
        });
        return attempt.complete((tx) => recordPayment(tx, request, attempt));
      },
    });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.OK });
    expect(told).toEqual({ resource: 'payments/1' });
  });

  it('stays what it is where a later phase says nothing', async () => {
    const requestId = randomUUID();
    let told: unknown;
    service.handle({
      createPayment: async (request, attempt) => {
        await attempt.phase('draft', async () => attempt.publish({ resource: 'payments/3' }));
        await attempt.phase('check', () => Promise.resolve());
        await attempt.effect('charge', async () => {
          told = Object.fromEntries((await service.pay({ requestId })).error.metadata);
        });
        return attempt.complete((tx) => recordPayment(tx, request, attempt));
      },
    });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.OK });
    expect(told).toEqual({ resource: 'payments/3' });
  });

  it('is known to the attempt that resumes after it', async () => {
    const requestId = randomUUID();
    let attempts = 0;
    service.handle({
      createPayment: async (request, attempt) => {
        attempts += 1;
        await attempt.phase('draft', async () => attempt.publish({ resource: 'payments/2' }));
        if (attempts === 1) throw new StatusError(status.UNAVAILABLE, 'not now');
        return attempt.complete((tx) => recordPayment(tx, request, attempt));
      },
    });
    await service.pay({ requestId });
    expect(await service.pay({ requestId })).toMatchObject({ code: status.OK });
  });
});
