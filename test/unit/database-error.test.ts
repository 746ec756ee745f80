import {
  isFenced,
  isLockTimeout,
  isLostConnection,
  isOutage,
  isSerializationFailure,
  provesRollback,
  sqlState,
} from '../../src/idempotency/store/database-error';
import {
  commitError,
  connectionTerminated,
  postgresCause,
  statementError,
  transactionError,
} from '../support/database-errors';

/** What an error means: its SQLSTATE, and what is true of it. */
interface Meaning {
  readonly state?: string;
  readonly runAgain?: true;
  readonly lockTimeout?: true;
  readonly lost?: true;
  readonly outage?: true;
  readonly rolledBack?: true;
}

const unreachable = { kind: 'DatabaseNotReachable', host: '127.0.0.1', port: 1 };
const conflict = (originalCode: string) => ({ kind: 'TransactionWriteConflict', originalCode });

const errors: readonly [string, unknown, Meaning][] = [
  ['a statement: 40001', statementError(conflict('40001')), { state: '40001', runAgain: true, rolledBack: true }],
  ['a statement: 40P01', statementError(conflict('40P01')), { state: '40P01', runAgain: true, rolledBack: true }],
  ['a model: 40001', statementError(conflict('40001'), 'P2034'), { state: '40001', runAgain: true, rolledBack: true }],
  ['COMMIT: 40001', commitError(conflict('40001')), { state: '40001', runAgain: true, rolledBack: true }],
  ['COMMIT: 23514', commitError(postgresCause('23514')), { state: '23514', rolledBack: true }],
  ['a statement: 23505', statementError(postgresCause('23505'), 'P2002'), { state: '23505', rolledBack: true }],
  ['a statement: 25P02', statementError(postgresCause('25P02')), { state: '25P02', rolledBack: true }],
  [
    'a statement: 55P03',
    statementError(postgresCause('55P03')),
    { state: '55P03', lockTimeout: true, outage: true, rolledBack: true },
  ],
  ['a statement: 25P03', statementError(postgresCause('25P03')), { state: '25P03', outage: true, rolledBack: true }],
  ['COMMIT: 25P03', commitError(postgresCause('25P03')), { state: '25P03', outage: true, rolledBack: true }],
  ['a statement: 25P04', statementError(postgresCause('25P04')), { state: '25P04', outage: true, rolledBack: true }],
  ['a statement: 25006', statementError(postgresCause('25006')), { state: '25006', outage: true, rolledBack: true }],
  [
    'a statement: 53300',
    statementError({ kind: 'TooManyConnections', originalCode: '53300' }),
    { state: '53300', outage: true, rolledBack: true },
  ],
  ['a statement: 57P01', statementError(postgresCause('57P01')), { state: '57P01', lost: true, outage: true }],
  ['a statement: 57P02', statementError(postgresCause('57P02')), { state: '57P02', lost: true, outage: true }],
  ['a statement: 08006', statementError(postgresCause('08006')), { state: '08006', lost: true, outage: true }],
  ['a statement: 57P03', statementError(postgresCause('57P03')), { state: '57P03', outage: true }],
  ['BEGIN: 57P03', statementError(postgresCause('57P03'), 'P2039'), { state: '57P03', outage: true }],
  ['COMMIT: 57P01', commitError(postgresCause('57P01')), { state: '57P01', lost: true, outage: true }],
  ['COMMIT: 40003', commitError(postgresCause('40003')), { state: '40003' }],
  ['a statement: 57014', statementError(postgresCause('57014')), { state: '57014', outage: true }],
  ['a statement: ECONNREFUSED', statementError(unreachable), { outage: true }],
  ['BEGIN: ECONNREFUSED', statementError(unreachable, 'P1001'), { outage: true }],
  ['a transaction: P1001', transactionError('P1001', {}), { outage: true }],
  ['a statement: ECONNRESET', statementError({ kind: 'ConnectionClosed' }), { lost: true, outage: true }],
  ['a statement: ETIMEDOUT', statementError({ kind: 'SocketTimeout' }), { outage: true }],
  ['a statement: TLS', statementError({ kind: 'TlsConnectionError' }), { outage: true }],
  ...['EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'EPIPE'].map((code): [string, unknown, Meaning] => [
    `the operating system: ${code}`,
    Object.assign(new Error(`connect ${code} 10.0.0.1:5432`), { code, syscall: 'connect' }),
    { lost: true, outage: true },
  ]),
  [
    'the operating system: EAI_AGAIN',
    Object.assign(new Error('getaddrinfo EAI_AGAIN db'), { code: 'EAI_AGAIN', syscall: 'getaddrinfo' }),
    { outage: true },
  ],
  ['an ended connection', connectionTerminated(), { lost: true, outage: true }],
  [
    'a connection that was dead before',
    new Error('Client has encountered a connection error and is not queryable'),
    { lost: true, outage: true, rolledBack: true },
  ],
  ['no connection in time', new Error('timeout exceeded when trying to connect'), { outage: true }],
  ['no answer in time', new Error('Connection terminated due to connection timeout'), { outage: true }],
  ['an ended pool', new Error('Cannot use a pool after calling end on the pool'), { outage: true }],
  ['no transaction in time', transactionError('P2028', {}), { outage: true }],
  [
    'a statement out of time',
    transactionError('P2028', { operation: 'query', timeout: 9, timeTaken: 10 }),
    { outage: true },
  ],
  [
    'a COMMIT out of time',
    transactionError('P2028', { operation: 'commit', timeout: 9, timeTaken: 10 }),
    { outage: true, rolledBack: true },
  ],
  ['no pool slot in time', transactionError('P2024', {}), { outage: true }],
  ['a closed connection of Prisma', transactionError('P1017', {}), { outage: true }],
  ['a row that was not found', transactionError('P2025', {}), {}],
  ['an error of a handler', new Error('the order is empty'), {}],
  ['an error with a cause of its own', new Error('outer', { cause: new Error('inner') }), {}],
  ['a code that is no text', statementError({ originalCode: 40001 }), {}],
  ['a message that is no text', Object.assign(new Error(), { message: undefined }), {}],
  ['a text', 'Connection terminated unexpectedly', {}],
  ['undefined', undefined, {}],
  ['null', null, {}],
  ['a meta that is null', Object.assign(new Error('odd'), { meta: null, cause: null }), {}],
];

describe('an error of the database', () => {
  it.each(errors)('%s is read for what it is', (_, error, meaning) => {
    expect({
      state: sqlState(error),
      runAgain: isSerializationFailure(error),
      lockTimeout: isLockTimeout(error),
      lost: isLostConnection(error),
      outage: isOutage(error),
      rolledBack: provesRollback(error),
    }).toEqual({
      state: undefined,
      runAgain: false,
      lockTimeout: false,
      lost: false,
      outage: false,
      rolledBack: false,
      ...meaning,
    });
  });
});

describe('an error of the database that holds a text', () => {
  const saying = (originalCode: string, message: string): Error =>
    Object.assign(new Error(message), { cause: postgresCause(originalCode) });

  it.each([
    ['the refusal of the fence', '22P02', 'invalid input syntax for type boolean: "claim is not held: 5d83b7bd"', true],
    [
      'a refusal in another language',
      '22P02',
      'ungültige Eingabesyntax für Typ boolean: »claim is not held: 5d«',
      true,
    ],
    ['another malformed value', '22P02', 'invalid input syntax for type uuid: "x"', false],
    ['a day that is gone', '23514', 'no partition of relation "idempotency_record" found for row', true],
    ['the same in another language', '23514', 'keine Partition von Relation »idempotency_record« für die Zeile', true],
    [
      'a broken invariant of a record',
      '23514',
      'new row for relation "idempotency_record_d20261130" violates check constraint "idempotency_record_state_known"',
      false,
    ],
    ['the text under another code', '22023', 'claim is not held: 5d83b7bd', false],
  ])('%s is fenced: %#', (_, state, message, expected) => {
    expect(isFenced(saying(state, message))).toBe(expected);
  });

  it('is run again where an index of the records was being replaced, and not for another fault inside', () => {
    expect(isSerializationFailure(saying('XX000', 'invalid arbiter index list'))).toBe(true);
    expect(isSerializationFailure(saying('XX000', 'cache lookup failed for index 7'))).toBe(false);
  });
});
