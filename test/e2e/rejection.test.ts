import { randomUUID } from 'node:crypto';
import { constants } from 'node:http2';
import { Metadata, status } from '@grpc/grpc-js';
import fc from 'fast-check';
import { reject, type Rejection, StatusError } from '../../src/idempotency/index';
import { isReservedTrailer, isSingleValueTrailer } from '../../src/idempotency/wire/metadata';
import { type AttemptService, recordPayment, startAttemptService } from '../support/attempt-service';
import type { StockAnswer } from '../support/stock-client';

/** Texts that a wire, a column or an encoder might change. */
const TEXTS = [
  'kart reddedildi: yetersiz bakiye ₺ – İIıi',
  'עברית العربية 中文 한국어',
  'e\u0301 is not \u00e9; \u{1F468}\u200D\u{1F469}\u200D\u{1F467} is one family; \u{10FFFF}',
  'NUL \0 in the middle\0',
  '\0',
  'line\r\nbreak\ttab\u0001\u001f\u007f\u0080\u009f',
  ' spaces before and after ',
  '100 % of 50%25 and %00 and %zz',
  '\uFEFF a mark, \uFFFD a replacement, \u2028 a separator',
  `"quotes", 'more', \\backslash\\, $1, {{x}}, <b>`,
  '',
];

/** The names of HTTP that a service may set as trailers, and that may have several values. */
const OTHER_NAMES = Object.entries(constants)
  .flatMap(([constant, name]) => (constant.startsWith('HTTP2_HEADER_') ? [String(name)] : []))
  .filter((name) => !isReservedTrailer(name) && !isSingleValueTrailer(name));

describe('a rejection (design 4.8)', () => {
  let service: AttemptService;
  let runs: number;

  beforeAll(async () => {
    service = await startAttemptService();
  });

  beforeEach(() => (runs = 0));
  afterAll(() => service.stop());

  /** Told to the first caller, and to a second one from the record. */
  const tellTwice = async (make: () => Rejection): Promise<readonly [StockAnswer, StockAnswer]> => {
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          runs += 1;
          await recordPayment(tx, request, attempt);
          return make();
        }),
    });
    const requestId = randomUUID();
    return [await service.pay({ requestId }), await service.pay({ requestId })];
  };

  /** Everything that both were told, but for what only one of them carries. */
  const told = ({ code, details, trailers }: StockAnswer): unknown => {
    const own = trailers.clone();
    for (const name of ['idempotent-replayed', 'date', 'content-type']) own.remove(name);
    return { code, details, trailers: own.toJSON() };
  };

  it.each(TEXTS)('has its text told and replayed as it is: %j', async (text) => {
    const [first, second] = await tellTwice(() => reject(new StatusError(status.FAILED_PRECONDITION, text)));

    expect(first.details).toBe(text);
    expect(told(second)).toEqual(told(first));
    expect(second.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(runs).toBe(1);
  });

  it('has any text told and replayed as it is', async () => {
    const texts = fc.sample(fc.string({ unit: 'binary', maxLength: 60 }), { numRuns: 25, seed: 7 });
    for (const text of texts) {
      const [first, second] = await tellTwice(() => reject(new StatusError(status.ABORTED, text)));
      expect([first.details, second.details]).toEqual([text, text]);
    }
  });

  it('that is thrown instead has any text told too', async () => {
    for (const text of ['half of an emoji \ud83d and a \0', ...TEXTS]) {
      service.handle({ createPayment: () => Promise.reject(new StatusError(status.ABORTED, text)) });
      expect((await service.pay()).details).toBe(text.toWellFormed());
    }
  });

  it.each([
    ['\ud83d', '\ufffd'],
    ['a \udc00 b \ud83d', 'a \ufffd b \ufffd'],
    ['\udc00\ud83d', '\ufffd\ufffd'],
    ['\ud83d\0', '\ufffd\0'],
  ])('has half a surrogate pair, which no wire carries, replaced for both: %j', async (text, sendable) => {
    const [first, second] = await tellTwice(() => reject(new StatusError(status.ABORTED, text)));
    expect([first.details, second.details]).toEqual([sendable, sendable]);
  });

  it('has reason, domain, metadata and violations told and replayed, byte for byte', async () => {
    const info = { reason: 'CARD_DECLINED', domain: 'payments.v1', metadata: { kart: 'reddedildi \0', empty: '' } };
    const violations = [{ field: 'payment_method', description: 'declined\0' }];
    const [first, second] = await tellTwice(() =>
      reject(new StatusError(status.FAILED_PRECONDITION, 'declined', violations, info)),
    );

    expect(first.error).toMatchObject({ reason: 'CARD_DECLINED', domain: 'payments.v1', violations });
    expect([...first.error.metadata]).toEqual(Object.entries(info.metadata));
    expect(first.trailers.get('grpc-status-details-bin')).toHaveLength(1);
    expect(told(second)).toEqual(told(first));
  });

  it('has trailers told and replayed: several values in their order, and every byte of a binary one', async () => {
    const trailers = new Metadata();
    trailers.add('decline-code', '51');
    trailers.add('hint', 'first');
    trailers.add('hint', 'second');
    const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    trailers.add('receipt-bin', everyByte);
    trailers.add('receipt-bin', Buffer.of());
    trailers.add('grpc-status-details-bin', Buffer.from('details of the service’s own'));
    const [first, second] = await tellTwice(() =>
      reject(new StatusError(status.FAILED_PRECONDITION, 'declined', [{ field: 'a', description: 'b' }]), trailers),
    );

    expect(first.trailers.get('decline-code')).toEqual(['51']);
    expect(first.trailers.get('hint').join(', ')).toBe('first, second');
    expect(first.trailers.get('receipt-bin')).toEqual([everyByte, Buffer.of()]);
    expect(first.trailers.get('grpc-status-details-bin')).toEqual([Buffer.from('details of the service’s own')]);
    expect(told(second)).toEqual(told(first));
  });

  it('is not changed by what the handler does with its trailers afterwards', async () => {
    const trailers = new Metadata();
    trailers.set('hint', 'as it was');
    service.handle({
      createPayment: async (_, attempt) => {
        const rejection = await attempt.complete(() =>
          Promise.resolve(reject(new StatusError(status.ABORTED, 'no'), trailers)),
        );
        trailers.set('hint', 'changed');
        return rejection;
      },
    });
    const requestId = randomUUID();
    for (const answer of [await service.pay({ requestId }), await service.pay({ requestId })]) {
      expect(answer.trailers.get('hint')).toEqual(['as it was']);
    }
  });

  test.each([
    ...['grpc-status', 'grpc-message', 'grpc-retry-pushback-ms', 'grpc-encoding'],
    ...['idempotent-replayed', 'idempotency-expires-at', 'idempotency-anything'],
    ...['content-type', 'content-length', 'date', 'te', 'trailer'],
    ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'http2-settings', ':status'],
  ])(
    'can not carry the trailer %s, which is not a service’s to set: it is named, and nothing commits',
    async (name) => {
      const trailers = new Metadata();
      trailers.set('fine', 'value');
      trailers.set(name, 'value');
      const error = new StatusError(status.ABORTED, 'no');
      expect(() => reject(error, trailers)).toThrow(new TypeError(`trailers that a service can't set: ${name}`));

      await service.database.rows('TRUNCATE payments, idempotency_record');
      const [first] = await tellTwice(() => reject(error, trailers));
      expect(first.code).toBe(status.INTERNAL);
      expect(await service.database.count('payments')).toBe(0);
      expect(await service.database.count('idempotency_record')).toBe(0);
    },
  );

  it.each([
    ['x', 59_000],
    ['ç', 9_000],
  ])('of as much text as a client takes is told and replayed (%s, %d times)', async (letter, times) => {
    const text = letter.repeat(times);
    const [first, second] = await tellTwice(() => reject(new StatusError(status.ABORTED, text)));
    expect([first.details === text, second.details === text]).toEqual([true, true]);
  });

  const HUGE = (): Metadata => {
    const trailers = new Metadata();
    trailers.set('receipt-bin', Buffer.alloc(46_200, 7));
    return trailers;
  };

  test.each<[string, string, Metadata | undefined]>([
    ['text', 'x'.repeat(61_500), undefined],
    ['text that is longer on the wire', 'ç'.repeat(11_000), undefined],
    ['trailers, which are longer on the wire', '', HUGE()],
  ])('of more %s than any client takes commits nothing: nobody could be told', async (_, text, trailers) => {
    await service.database.rows('TRUNCATE payments, idempotency_record');
    const [first] = await tellTwice(() => reject(new StatusError(status.ABORTED, text), trailers));

    expect(first.code).toBe(status.INTERNAL);
    expect(await service.database.count('payments')).toBe(0);
    expect(await service.database.count('idempotency_record')).toBe(0);
    const fault = service.events.find((event) => event.type === 'fault');
    expect(String(fault?.error)).toMatch(/a status takes 6\d,\d{3} bytes with its trailers: expected at most 61,440/);
  });

  it.each([61_439, 61_440])('of as much text as may be recorded is the same to everybody (%d)', async (length) => {
    // Trailers that the answer carries besides go to the same block of headers.
    const text = 'x'.repeat(length);
    const [first, second] = await tellTwice(() => reject(new StatusError(status.ABORTED, text)));

    expect([first.code, second.code]).toEqual([status.ABORTED, status.ABORTED]);
    expect([first.details === text, second.details === text]).toEqual([true, true]);
    expect(first.trailers.get('idempotency-expires-at')).toHaveLength(1);
    expect(runs).toBe(1);
  });

  const twice = (name: string): Metadata => {
    const trailers = new Metadata();
    trailers.add(name, 'one');
    trailers.add(name, 'two');
    return trailers;
  };

  it.each(['etag', 'retry-after', 'user-agent', 'host', 'upgrade-insecure-requests'])(
    'can not carry the trailer %s twice, which HTTP/2 does not: it is named, and nothing commits',
    async (name) => {
      const error = new StatusError(status.ABORTED, 'no');
      expect(() => reject(error, twice(name))).toThrow(new TypeError(`trailers of one value at most: ${name}`));

      await service.database.rows('TRUNCATE payments, idempotency_record');
      const [first] = await tellTwice(() => reject(error, twice(name)));
      expect(first.code).toBe(status.INTERNAL);
      expect(await service.database.count('payments')).toBe(0);
      expect(await service.database.count('idempotency_record')).toBe(0);
    },
  );

  it.each(['etag', 'retry-after', 'user-agent', 'host'])('carries the trailer %s once', async (name) => {
    const trailers = new Metadata();
    trailers.set(name, 'one');
    const [first, second] = await tellTwice(() => reject(new StatusError(status.ABORTED, 'no'), trailers));
    expect([first.code, second.code]).toEqual([status.ABORTED, status.ABORTED]);
    expect([first.trailers.get(name), second.trailers.get(name)]).toEqual([['one'], ['one']]);
  });

  it('may carry every other name of HTTP twice', async () => {
    for (const name of OTHER_NAMES) {
      const [first, second] = await tellTwice(() => reject(new StatusError(status.ABORTED, 'no'), twice(name)));
      expect([name, first.code, second.code]).toEqual([name, status.ABORTED, status.ABORTED]);
    }
  });

  it('that got what HTTP/2 will not carry behind the check is INTERNAL to everybody, and the server lives', async () => {
    const [first, second] = await tellTwice(() => {
      const trailers = new Metadata();
      trailers.add('etag', 'one');
      const rejection = reject(new StatusError(status.ABORTED, 'no'), trailers);
      trailers.add('etag', 'two');
      return rejection;
    });

    expect([first.code, second.code]).toEqual([status.INTERNAL, status.INTERNAL]);
    expect(runs).toBe(1);
    const faults = service.events.flatMap((event) => (event.type === 'fault' ? [event.what] : []));
    expect(faults).toEqual(['a reply could not be sent', 'a reply could not be sent']);
  });
});
