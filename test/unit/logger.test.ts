import type { ServerEvent } from '../../src/idempotency/index';
import { ADMISSION_OUTCOMES, StatusError } from '../../src/idempotency/index';
import { createLogger, logServerEvents } from '../../src/ops/logger';

type CallEvent = Extract<ServerEvent, { type: 'call' }>;
type Line = Readonly<Record<string, unknown>>;

const PATH = '/payments.v1.PaymentsService/CreatePayment';

const CALL: CallEvent = {
  type: 'call',
  path: PATH,
  requestId: '01980000-0000-7000-8000-000000000001',
  scope: 'account-7',
  outcome: 'claimed',
  code: 0,
  attempt: 1,
  durationMs: 12.3456789,
  published: { orderId: 'order-1', paymentId: 'payment-1', state: 'AUTHORIZED' },
};

/** What a logger writes of these events, raw. */
function write(events: readonly ServerEvent[], level: 'trace' | 'warn' = 'trace'): string[] {
  const written: string[] = [];
  const listener = logServerEvents(createLogger({ level, destination: { write: (line) => void written.push(line) } }));
  for (const event of events) listener(event);
  return written;
}

function parse(line: string | undefined): Line {
  return JSON.parse(line ?? 'null') as Line;
}

test('a keyed call is one line with all that was said about it', () => {
  const lines = write([CALL]);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^[^\n]+\n$/);
  expect(parse(lines[0])).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as unknown,
    pid: process.pid,
    hostname: expect.any(String) as unknown,
    msg: 'keyed call',
    requestId: CALL.requestId,
    method: PATH,
    outcome: 'claimed',
    attempt: 1,
    code: 'OK',
    durationMs: 12.346,
    'published.orderId': 'order-1',
    'published.paymentId': 'payment-1',
    'published.state': 'AUTHORIZED',
  });
});

test('where the record stands is told apart from the state that the handler published', () => {
  const line = parse(write([{ ...CALL, recordState: 'completed' }])[0]);
  expect(line).toMatchObject({ recordState: 'completed', 'published.state': 'AUTHORIZED' });
  expect(line).not.toHaveProperty('state');
});

test('a refusal says its code and its reason', () => {
  const [line] = write([{ ...CALL, outcome: 'mismatch', code: 9, reason: 'REQUEST_ID_REUSED' }]);
  expect(parse(line)).toMatchObject({ outcome: 'mismatch', code: 'FailedPrecondition', reason: 'REQUEST_ID_REUSED' });
});

test('what a handler published takes no field of ours, whatever its name', () => {
  const ours = parse(write([{ ...CALL, published: {} }])[0]);
  const names = [...Object.keys(ours), '__proto__', 'constructor', 'err'];
  const published = Object.fromEntries(names.map((name) => [name, 'a "forged"\nvalue']));
  const lines = write([{ ...CALL, published }]);
  expect(lines[0]).toMatch(/^[^\n]+\n$/);
  const line = parse(lines[0]);
  for (const name of names) expect(line[`published.${name}`]).toBe('a "forged"\nvalue');
  expect(line).toMatchObject({ ...ours, time: line['time'] });
  // A repeated name would hide from a parser, which keeps the last.
  for (const name of Object.keys(ours)) expect(lines[0]?.split(`"${name}":`)).toHaveLength(2);
});

test.each(ADMISSION_OUTCOMES)('%s has a level', (outcome) => {
  const expected: Partial<Record<typeof outcome, string>> = {
    claimed: 'info',
    replayed: 'info',
    in_progress: 'info',
    // Allowed by the policy: its key is optional.
    unprotected: 'info',
    store_unavailable: 'error',
  };
  expect(parse(write([{ ...CALL, outcome }])[0])['level']).toBe(expected[outcome] ?? 'warn');
});

test.each([
  [0, undefined, 'info'],
  [3, undefined, 'info'],
  [10, 'CLAIM_LOST', 'warn'],
  [2, undefined, 'error'],
  [13, undefined, 'error'],
  [14, 'STORE_UNAVAILABLE', 'error'],
  [15, undefined, 'error'],
])('a run that ended with code %d and reason %s is %s', (code, reason, level) => {
  const event = reason === undefined ? { ...CALL, code } : { ...CALL, code, reason };
  expect(parse(write([event])[0])['level']).toBe(level);
});

describe('an error that a handler answered with', () => {
  const error = Object.assign(new StatusError(14, 'the bank is away'), { cause: new Error('cable cut') });
  const failed = { ...CALL, reason: 'BANK_AWAY', error };

  it('is told with its causes where the service failed', () => {
    const line = parse(write([{ ...failed, code: 14 }])[0]);
    expect(line).toMatchObject({ level: 'error', code: 'Unavailable', reason: 'BANK_AWAY' });
    expect(line['err']).toMatch(/the bank is away[^]*caused by: Error: cable cut/);
  });

  it('is no more than its reason where the call was wrong: its text may be about what the caller sent', () => {
    const line = parse(write([{ ...failed, code: 3 }])[0]);
    expect(line).toMatchObject({ level: 'info', reason: 'BANK_AWAY' });
    expect(line).not.toHaveProperty('err');
  });

  it('is told likewise of a request that was resumed', () => {
    const { requestId = '', durationMs, published } = CALL;
    const resumed = { type: 'resumed', path: PATH, requestId, scope: 's', result: 'failed', attempt: 2 } as const;
    const event: ServerEvent = { ...resumed, code: 14, durationMs, published, reason: 'BANK_AWAY', error };
    const line = parse(write([event])[0]);
    expect(line).toMatchObject({ level: 'warn', reason: 'BANK_AWAY' });
    expect(line['err']).toContain('cable cut');
  });
});

test.each<ServerEvent>([
  { type: 'fault', path: PATH, what: 'the handler failed', error: new Error('x'), requestId: 'key' },
  { type: 'too_large', path: PATH, responseBytes: 2, limit: 1, requestId: 'key' },
  { type: 'execution_limit', path: PATH, requestId: 'key' },
  { type: 'settled', path: PATH, result: 'lost', requestId: 'key' },
  { type: 'lease_ended', path: PATH, requestId: 'key' },
  { type: 'parked', path: PATH, requestId: 'key' },
])('the line of $type has the key of its request', (event) => {
  expect(parse(write([event])[0])['requestId']).toBe('key');
});

test.each([
  ['completed', 0, 'info'],
  ['overtaken', 10, 'info'],
  ['failed', 14, 'warn'],
] as const)('a request that was resumed and %s is a line like that of a call', (result, code, level) => {
  const { requestId, durationMs, published } = CALL;
  const scope = 'account-1';
  const lines = write([
    {
      ...{ type: 'resumed', path: PATH, scope, result, code, attempt: 2 },
      requestId: requestId ?? '',
      durationMs,
      published,
    },
  ]);
  const ofCall = parse(write([{ ...CALL, code, attempt: 2 }])[0]);
  const line = parse(lines[0]);
  expect(lines).toHaveLength(1);
  expect(line).toEqual({
    ...{ ...ofCall, outcome: undefined, time: line['time'] },
    ...{ level, msg: 'resumed request', result },
  });
});

test('half-finished requests without a handler are an error line', () => {
  const line = parse(write([{ type: 'stranded', path: PATH, records: 3 }])[0]);
  expect(line).toMatchObject({ level: 'error', method: PATH, records: 3 });
});

test('the level of the logger holds', () => {
  expect(write([CALL, { ...CALL, outcome: 'mismatch' }], 'warn')).toHaveLength(1);
});

test('a fault is an error line with the stacks of its causes, and nothing else an error carries', () => {
  const cause = Object.assign(new Error('connection refused'), {
    detail: 'Key (order_id)=(secret-order)',
    query: 'SQL',
  });
  const error = Object.assign(new Error('handler failed', { cause }), { request: { card: '4111' } });
  const lines = write([{ type: 'fault', path: PATH, what: 'the handler threw', error }]);
  expect(lines).toHaveLength(1);
  const line = parse(lines[0]);
  expect(Object.keys(line).sort()).toEqual(['err', 'hostname', 'level', 'method', 'msg', 'pid', 'time']);
  expect(line).toMatchObject({ level: 'error', msg: 'the handler threw', method: PATH });
  expect(line['err']).toContain('Error: handler failed\n    at ');
  expect(line['err']).toContain('caused by: Error: connection refused\n    at ');
  expect(lines[0]).not.toMatch(/secret-order|SQL|4111/);
});

test('an error that is logged by itself shows its stacks alone too', () => {
  const written: string[] = [];
  const logger = createLogger({ level: 'info', destination: { write: (line) => void written.push(line) } });
  logger.error(Object.assign(new Error('connection lost'), { query: 'SQL' }), 'a round failed');
  const line = parse(written[0]);
  expect(Object.keys(line).sort()).toEqual(['err', 'hostname', 'level', 'msg', 'pid', 'time']);
  expect(line['err']).toContain('Error: connection lost\n    at ');
  expect(line['msg']).toBe('a round failed');
});

test('the errors that an error gathers are told, since its own text can be empty', () => {
  const error = new AggregateError([
    new Error('connect ECONNREFUSED ::1'),
    new Error('connect ECONNREFUSED 127.0.0.1'),
  ]);
  const [line] = write([{ type: 'fault', path: PATH, what: 'store', error }]);
  expect(parse(line)['err']).toMatch(/ECONNREFUSED ::1[^]*ECONNREFUSED 127\.0\.0\.1/);
});

test('of a thrown value that is no error only the type is told', () => {
  const lines = write([{ type: 'fault', path: PATH, what: 'the handler threw', error: { card: '4111' } }]);
  expect(parse(lines[0])['err']).toBe('a thrown object');
});

test('an error that causes itself is told in a bounded line', () => {
  const error = new Error('ring');
  error.cause = error;
  const [line] = write([{ type: 'fault', path: PATH, what: 'ring', error }]);
  expect(String(parse(line)['err']).split('caused by: ')).toHaveLength(8);
});

test('what the metrics count is not logged as well', () => {
  const events: ServerEvent[] = [
    { type: 'admitted', path: PATH, outcome: 'claimed' },
    { type: 'claim', path: PATH, durationMs: 1 },
    { type: 'execution', path: PATH, durationMs: 1, leaseMs: 30_000 },
    { type: 'takeover', path: PATH },
    { type: 'fenced', path: PATH },
    { type: 'released', path: PATH },
  ];
  expect(write(events)).toEqual([]);
});
