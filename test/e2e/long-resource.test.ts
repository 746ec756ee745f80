import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { type AttemptService, payAndComplete, startAttemptService } from '../support/attempt-service';
import { deferred } from '../support/deferred';
import { until } from '../support/until';

/** More than a block of headers holds. */
const LENGTH = 70_000;
const LONGER = 200_000;

describe('what no block of headers holds keeps nobody on its connection without an answer', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService();
  });

  beforeEach(() => service.database.rows('TRUNCATE payments, idempotency_record'));

  afterAll(() => service.stop());

  /** What a duplicate and others are told while the first attempt, which has published a resource, still runs. */
  const tellMeanwhile = async (resource: string) => {
    const requestId = randomUUID();
    const proceed = deferred();
    service.handle({
      createPayment: async (request, attempt) => {
        if (attempt.requestId === requestId) {
          attempt.publish({ resource });
          await proceed.promise;
        }
        return payAndComplete(request, attempt);
      },
    });
    const first = service.pay({ requestId });
    await until('the resource is stored', async () => {
      return (await service.database.count('idempotency_record WHERE resource IS NOT NULL')) === 1;
    });
    const duplicate = await service.pay({ requestId, deadlineMs: 3_000 });
    const other = await service.pay({ deadlineMs: 3_000 });
    proceed.resolve();
    return { duplicate, other, first: await first };
  };

  it('a resource: a duplicate is told all but that', async () => {
    const { duplicate, other, first } = await tellMeanwhile(`payments/${'x'.repeat(LENGTH)}`);

    expect(duplicate).toMatchObject({ code: status.ABORTED, error: { reason: 'REQUEST_IN_PROGRESS' } });
    expect([...duplicate.error.metadata]).toEqual([]);
    expect([other.code, first.code]).toEqual([status.OK, status.OK]);
  });

  it.each([
    ['x', 4_096, true],
    ['x', 4_097, false],
    ['ç', 2_048, true],
    ['ç', 2_049, false],
  ])('a resource of 4 KiB is told, and a longer one is not (%s, %d times)', async (letter, times, isTold) => {
    const resource = letter.repeat(times);

    const { duplicate } = await tellMeanwhile(resource);

    expect(duplicate.error).toMatchObject({ reason: 'REQUEST_IN_PROGRESS' });
    expect(duplicate.error.metadata.get('resource') === resource).toBe(isTold);
  });

  it('the text of a recorded answer, such as one that somebody put there: it is INTERNAL, and others go on', async () => {
    const requestId = randomUUID();
    service.handle({ createPayment: payAndComplete });
    expect((await service.pay({ requestId })).code).toBe(status.OK);
    await service.database.rows(
      `UPDATE idempotency_record SET status_code = ${status.ABORTED}, status_message = repeat('x', ${LONGER}),
       response = NULL`,
    );

    const replay = await service.pay({ requestId, deadlineMs: 3_000 });
    const other = await service.pay({ deadlineMs: 3_000 });

    expect([replay.code, other.code]).toEqual([status.INTERNAL, status.OK]);
    expect(service.events).toContainEqual(
      expect.objectContaining({ type: 'fault', what: 'a reply could not be sent' }),
    );
  });
});
