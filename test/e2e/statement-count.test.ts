import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { StatusError } from '../../src/idempotency/index';
import {
  type AttemptService,
  payAndComplete,
  type PaymentAttempt,
  recordPayment,
  startAttemptService,
} from '../support/attempt-service';
import type { CreatePaymentRequest } from '../../src/gen/proto/payments/v1/payments';
import { deferred } from '../support/deferred';
import { paymentRequest } from '../support/payment-requests';
import { type OwnPostgres, startOwnPostgres } from '../support/postgres';
import { endLeases } from '../support/stored-record';

// A server of its own starts slowly on a busy machine.
jest.setTimeout(90_000);

/** The statements by what only they say. Postgres keeps their texts without their constants. */
const KINDS: readonly (readonly [string, RegExp])[] = [
  ['claim', /^WITH setting (?!.*DO UPDATE).*INSERT INTO idempotency_record/s],
  ['look-up', /^SELECT record\.state.*LEFT JOIN idempotency_record/s],
  ['takeover', /attempt = record\.attempt \+ /],
  ['fence', /completed_at = statement_timestamp\(\)/],
  ['release', /DELETE FROM idempotency_record/],
  // What is stored with a phase is its fence.
  ['step', /DO UPDATE\s+SET recovery_point = /],
  ['publish', /SET resource = /],
  ['effect', /INSERT INTO "?(public"?\."?)?payments/],
  ['begin', /^BEGIN/],
  ['commit', /^COMMIT/],
  ['rollback', /^ROLLBACK/],
];

/** What belongs to the transaction of a handler, its own statement among it. */
const IN_TRANSACTION: readonly string[] = ['begin', 'effect', 'fence', 'step', 'commit', 'rollback'];
const TRANSACTION = ['begin', 'effect', 'fence', 'commit'];
const FIRST_EXECUTION = ['claim', ...TRANSACTION];

describe('the statements of a call, as Postgres counts them (design 4.6, 4.8)', () => {
  let database: OwnPostgres;
  let service: AttemptService;

  beforeAll(async () => {
    database = await startOwnPostgres({ settings: { shared_preload_libraries: 'pg_stat_statements' } });
    await database.rows('CREATE EXTENSION pg_stat_statements');
    service = await startAttemptService({ database });
    // Connections, and what is done once on each.
    service.handle({ createPayment: payAndComplete });
    await Promise.all([service.pay(), service.pay()]);
  });

  beforeEach(() => service.database.rows('TRUNCATE payments, idempotency_record'));
  afterAll(async () => {
    console.log(countTable(counted));
    await service.stop();
  });

  /** What a call of each kind ran, for the table. */
  const counted: (readonly [call: string, kinds: readonly string[]])[] = [];

  /** What Postgres ran for this work, by kind, in the order of KINDS; a statement that is none of them as it is. */
  const statementsOf = async (call: string, work: () => Promise<unknown>): Promise<readonly string[]> => {
    await database.rows('SELECT pg_stat_statements_reset()');
    await work();
    const rows = await database.rows<{ query: string; calls: string }>(
      `SELECT query, calls FROM pg_stat_statements
       WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query NOT LIKE '%pg_stat%'`,
    );
    const ran = rows.flatMap(({ query, calls }) => {
      const [kind] = KINDS.find(([, pattern]) => pattern.test(query)) ?? [query];
      return Array.from({ length: Number(calls) }, () => kind);
    });
    const places = KINDS.map(([kind]) => kind);
    const sorted = ran.sort((one, other) => places.indexOf(one) - places.indexOf(other));
    counted.push([call, sorted]);
    return sorted;
  };
  const inOrder = (kinds: readonly string[]): readonly string[] =>
    KINDS.flatMap(([kind]) => kinds.filter((ran) => ran === kind));

  const nothing = () => Promise.resolve({ payment: undefined });
  const safe = { getPayment: nothing, cancelPayment: nothing, updatePayment: nothing };
  const request = { payment_id: randomUUID() };
  const [requestId] = [randomUUID()];

  test.each([
    ['a safe read', { method: 'GetPayment', request }],
    ['a safe read that carries a key', { method: 'GetPayment', request, requestId }],
    ['an idempotent method that takes no key', { method: 'CancelPayment', request, requestId }],
    ['a keyless call where the key is optional', { method: 'UpdatePayment', request }],
  ])('%s: 0', async (name, call) => {
    service.handle(safe);
    const ran = await statementsOf(name, async () => expect((await service.client.call(call)).code).toBe(status.OK));
    expect(ran).toEqual([]);
  });

  test.each([
    ['no key', {}],
    ['a malformed key', { 'request-id': 'order-1' }],
    ['a keyless resend', { 'grpc-previous-rpc-attempts': '1' }],
  ])('a refusal for %s: 0', async (name, metadata) => {
    expect(await statementsOf(`refused: ${name}`, () => service.pay({ requestId: undefined, metadata }))).toEqual([]);
  });

  it('a first execution: 1 before the handler, the claim, and 1 in its transaction, the fence', async () => {
    service.handle({ createPayment: payAndComplete });
    expect(await statementsOf('first execution', () => service.pay())).toEqual(inOrder(FIRST_EXECUTION));
  });

  it('a first execution that publishes: 1 more', async () => {
    service.handle({
      createPayment: (payment, attempt) => {
        attempt.publish({ resource: 'payments/1' });
        return payAndComplete(payment, attempt);
      },
    });
    expect(await statementsOf('first execution that publishes', () => service.pay())).toEqual(
      inOrder([...FIRST_EXECUTION, 'publish']),
    );
  });

  it('a phase that publishes: none more, since the resource is stored with it', async () => {
    service.handle({
      createPayment: async (payment, attempt) => {
        await attempt.phase('draft', async () => attempt.publish({ resource: 'payments/1' }));
        attempt.publish({ resource: 'payments/1' });
        return payAndComplete(payment, attempt);
      },
    });
    expect(await statementsOf('first execution whose phase publishes', () => service.pay())).toEqual(
      inOrder([...FIRST_EXECUTION, 'begin', 'step', 'commit']),
    );
  });

  it('a replay: 2, the claim and a look-up; a mismatch: the same 2', async () => {
    service.handle({ createPayment: payAndComplete });
    const key = randomUUID();
    await service.pay({ requestId: key });
    expect(await statementsOf('replay', () => service.pay({ requestId: key }))).toEqual(['claim', 'look-up']);
    const other = { requestId: key, request: paymentRequest({ order_id: 'order-2' }) };
    expect(await statementsOf('mismatch', () => service.pay(other))).toEqual(['claim', 'look-up']);
  });

  it('a duplicate of a running attempt: the same 2', async () => {
    const [started, proceed] = [deferred(), deferred()];
    service.handle({
      createPayment: async (payment, attempt) => {
        started.resolve();
        await proceed.promise;
        return payAndComplete(payment, attempt);
      },
    });
    const key = randomUUID();
    const first = service.pay({ requestId: key });
    await started.promise;
    expect(await statementsOf('in progress', () => service.pay({ requestId: key }))).toEqual(['claim', 'look-up']);
    proceed.resolve();
    await first;
  });

  it('a takeover: 2 more than a first execution', async () => {
    const [started, proceed] = [deferred(), deferred()];
    let runs = 0;
    service.handle({
      createPayment: async (payment, attempt) => {
        runs += 1;
        if (runs === 1) {
          started.resolve();
          await proceed.promise;
        }
        return payAndComplete(payment, attempt);
      },
    });
    const key = randomUUID();
    const dead = service.pay({ requestId: key });
    await started.promise;
    await endLeases(database);
    const ran = await statementsOf('takeover', () => service.pay({ requestId: key }));
    expect(ran).toEqual(inOrder([...FIRST_EXECUTION, 'look-up', 'takeover']));
    proceed.resolve();
    await dead;
  });

  const refuse = () => Promise.reject(new StatusError(status.NOT_FOUND, 'no such order'));
  test.each<[string, (payment: CreatePaymentRequest, attempt: PaymentAttempt) => Promise<never>, readonly string[]]>([
    ['before complete', refuse, ['claim', 'release']],
    [
      'inside complete',
      (payment, attempt) =>
        attempt.complete(async (tx) => {
          await recordPayment(tx, payment, attempt);
          return refuse();
        }),
      ['claim', 'begin', 'effect', 'rollback', 'release'],
    ],
  ])(
    'a refusal that is thrown %s: 2, the claim and its release, beside the transaction that was rolled back',
    async (name, createPayment, expected) => {
      service.handle({ createPayment });
      expect(await statementsOf(`thrown ${name}`, () => service.pay())).toEqual(inOrder(expected));
    },
  );
});

/** How many statements a call of each kind is, as a table to quote. */
function countTable(counted: readonly (readonly [call: string, kinds: readonly string[]])[]): string {
  const rows = counted.map(([call, kinds]) => {
    const inside = IN_TRANSACTION.flatMap((kind) => kinds.filter((ran) => ran === kind));
    const outside = kinds.filter((kind) => !IN_TRANSACTION.includes(kind));
    return [call, String(kinds.length), outside.join(', '), inside.join(', ')];
  });
  const lines = [['call', 'statements', 'by themselves', 'in the transaction of the handler'], ...rows];
  return lines
    .map(([call = '', count = '', ...kinds]) =>
      [call.padEnd(40), count.padStart(10), ' ', kinds[0]?.padEnd(26), kinds[1]].join(' ').trimEnd(),
    )
    .join('\n');
}
