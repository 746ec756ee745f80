import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { CompletionFailedError } from '../../src/idempotency/index';
import { type AttemptService, recordPayment, startAttemptService } from '../support/attempt-service';
import { type CommitProxy, startCommitProxy } from '../support/commit-proxy';

describe('a connection that is cut at the COMMIT of a phase (design 4.8, 4.10)', () => {
  let proxy: CommitProxy;
  let service: AttemptService;
  /** How often the phase ran. */
  let runs: number;
  let failures: unknown[];

  beforeAll(async () => {
    service = await startAttemptService({
      route: async ({ connectionString }) => (proxy = await startCommitProxy(connectionString)).connectionString,
    });
  });

  beforeEach(async () => {
    [runs, failures] = [0, []];
    await service.database.rows('TRUNCATE payments, idempotency_record');
    service.handle({
      createPayment: async (request, attempt) => {
        const draft = attempt.phase('draft', async (tx) => {
          runs += 1;
          return recordPayment(tx, request, attempt).then(({ payment }) => payment.paymentId);
        });
        await draft.catch((error: unknown) => {
          failures.push(error);
          throw error;
        });
        return attempt.complete(async () => ({ payment: undefined }));
      },
    });
  });

  afterAll(async () => {
    await service.stop();
    proxy.close();
  });

  const settled = () => service.events.flatMap((event) => (event.type === 'settled' ? [event.result] : []));

  it('before its answer arrives: the phase has happened, and its attempt goes on', async () => {
    const cut = proxy.on('COMMIT', 'cut after');

    expect((await service.pay()).code).toBe(status.OK);

    expect(cut.times()).toBe(1);
    expect(settled()).toEqual(['never_committed']);
    expect(failures).toEqual([]);
    expect(runs).toBe(1);
    expect(await service.database.count('payments')).toBe(1);
    expect(await service.database.count(`idempotency_record WHERE state = 'completed' AND attempt = 1`)).toBe(1);
  });

  it('before the server has it: the phase has not happened, the key is free at once, and the retry runs it', async () => {
    const requestId = randomUUID();
    const cut = proxy.on('COMMIT', 'cut before');

    expect(await service.pay({ requestId })).toMatchObject({
      code: status.UNAVAILABLE,
      error: { reason: 'STORE_UNAVAILABLE' },
    });

    expect(cut.times()).toBe(1);
    expect(failures).toEqual([new CompletionFailedError('the commit of a phase did not happen')]);
    expect(await service.database.count('payments')).toBe(0);
    expect((await service.pay({ requestId })).code).toBe(status.OK);
    expect(runs).toBe(2);
    expect(await service.database.count('payments')).toBe(1);
  });
});
