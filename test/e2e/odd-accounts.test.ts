import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { Principal } from '../../src/idempotency/index';
import { type AttemptService, payAndComplete, startAttemptService, toldText } from '../support/attempt-service';

describe('an account whose name no text column holds as it is (design 4.3)', () => {
  let service: AttemptService;
  let account: ReturnType<Principal>;
  let handled: number;

  beforeAll(async () => {
    service = await startAttemptService({ principal: () => account });
  });

  beforeEach(async () => {
    handled = 0;
    await service.database.rows('TRUNCATE payments, idempotency_record');
    service.handle({
      createPayment: (request, attempt) => {
        handled += 1;
        return payAndComplete(request, attempt);
      },
      getPayment: () => {
        handled += 1;
        return Promise.resolve({ payment: undefined });
      },
    });
  });

  afterAll(() => service.stop());

  const odd: readonly [string, ReturnType<Principal>][] = [
    ['half a surrogate pair', 'half \ud800'],
    ['its other half', '\udc00 half'],
    ['NUL', 'a\0b'],
    ['NUL, given later', Promise.resolve('\0')],
    ['no text', 7 as never],
    ['no text, given later', Promise.resolve({} as never)],
    ['null', null as never],
  ];

  it.each(odd)('is a fault of the service: %s', async (_, name) => {
    account = name;
    for (const method of ['CreatePayment', 'GetPayment']) {
      const answer = await service.client.call({ method, request: {}, requestId: randomUUID() });

      expect(answer.code).toBe(status.INTERNAL);
      expect(toldText(answer)).toBe('internal error');
    }
    const faults = service.events.flatMap((event) => (event.type === 'fault' ? [event] : []));
    expect(faults.map(({ what }) => what)).toEqual(Array(2).fill('the call could not be admitted'));
    expect(faults[0]?.error).toBeInstanceOf(TypeError);
    expect(handled).toBe(0);
    expect(await service.database.count('idempotency_record')).toBe(0);
  });

  it('never shares a key with another one', async () => {
    const requestId = randomUUID();
    account = 'half \ud800';
    await service.pay({ requestId });
    account = 'half \ufffd';

    const other = await service.pay({ requestId });

    expect(other.code).toBe(status.OK);
    expect(other.trailers.get('idempotent-replayed')).toEqual([]);
  });

  it.each(['kötü \u{1F468} 中文', '\ufffd'])('is none where a column holds it: %s', async (name) => {
    account = name;
    expect((await service.pay()).code).toBe(status.OK);
    expect(await service.database.rows('SELECT scope FROM idempotency_record')).toEqual([{ scope: name }]);
  });
});
