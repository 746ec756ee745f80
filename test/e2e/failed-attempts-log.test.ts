import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import { createLogger, logServerEvents } from '../../src/ops/logger';
import { deferred } from '../support/deferred';
import { type HalfFinishing, startHalfFinishing } from '../support/half-finished';
import { payInSteps } from '../support/pay-in-steps';

type Line = Readonly<Record<string, unknown>>;

const INFO = { reason: 'NETWORK_AWAY', domain: 'bank' };

describe('the log of attempts that failed, searched by the key of their request', () => {
  let half: HalfFinishing;

  beforeAll(async () => (half = await startHalfFinishing()));
  beforeEach(() => half.clear());
  afterAll(() => half.service.stop());

  /** What the log has of a request, from everything that happened to all of them. */
  const linesOf = (requestId: string): readonly Line[] => {
    const lines: Line[] = [];
    const destination = { write: (line: string) => void lines.push(JSON.parse(line) as Line) };
    const log = logServerEvents(createLogger({ level: 'info', destination }));
    for (const event of half.service.events) log(event);
    return lines.filter((line) => line['requestId'] === requestId);
  };
  const failOn = (point: 'begun', error: unknown) =>
    half.service.handle({
      createPayment: payInSteps(half.service.database, async (at) => {
        if (at === point) throw error;
      }),
    });

  it('has one for each that the completer made, with what was wrong, and says when it is parked', async () => {
    const requestId = await half.halfFinished();
    const error = new StatusError(status.UNAVAILABLE, 'the network is away', [], INFO);
    failOn('begun', Object.assign(error, { cause: new Error('cable cut') }));
    const completer = half.service.idempotency.createCompleter();
    for (let attempt = 2; attempt <= 11; attempt += 1) {
      await half.muchLater();
      await completer.runOnce();
    }
    const resumed = linesOf(requestId).filter(({ msg }) => msg === 'resumed request');
    expect(resumed.map(({ attempt }) => attempt)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10]);
    for (const line of resumed) {
      expect(line).toMatchObject({ level: 'warn', result: 'failed', code: 'Unavailable', reason: 'NETWORK_AWAY' });
      expect(line['err']).toMatch(/the network is away[^]*caused by: Error: cable cut/);
    }
    expect(linesOf(requestId)).toContainEqual(
      expect.objectContaining({ level: 'error', msg: 'a request was tried too often and waits for a person' }),
    );
  });

  it('has what broke where a resumed attempt threw something else', async () => {
    const requestId = await half.halfFinished();
    failOn('begun', new Error('a broken promise'));
    await half.muchLater();
    expect(await half.service.idempotency.createCompleter().runOnce()).toEqual(['failed']);
    expect(linesOf(requestId).map(({ err }) => String(err))).toContainEqual(
      expect.stringContaining('Error: a broken promise'),
    );
  });

  it('has those that the end of their process cut short', async () => {
    const [running, goOn] = [deferred(), deferred()];
    half.service.handle({
      createPayment: async () => {
        running.resolve();
        await goOn.promise;
        throw new StatusError(status.ABORTED, 'too late');
      },
    });
    const call = { request: { order_id: 'order-1' }, requestId: '01980000-0000-4000-8000-00000000000a' };
    const answered = half.service.pay(call);
    await running.promise;
    await half.service.idempotency.abandon();
    goOn.resolve();
    await answered;
    expect(linesOf(call.requestId)).toContainEqual(
      expect.objectContaining({ level: 'warn', msg: expect.stringContaining('a lease was ended early') as unknown }),
    );
  });
});
