import { randomUUID } from 'node:crypto';
import { claimRequest, datedKey } from '../support/claim-requests';
import type { OperatedStore } from '../support/operated-store';
import { openOperatorCli, type OperatorCli, PATH } from '../support/operator-cli';
import { createTestDatabase } from '../support/postgres';
import { statementsWaiting } from '../support/record-hold';
import { answerOf, claim, complete } from '../support/store';

let cli: OperatorCli;
let opened: OperatedStore;

beforeAll(async () => {
  cli = await openOperatorCli();
  opened = cli.opened;
});
beforeEach(() => opened.clear());
afterAll(() => opened.close());

describe('grpc-idempotency release', () => {
  it('frees a parked request, says what will be sent again, and logs who did it', async () => {
    const request = await opened.parked();
    const { code, lines, errors } = await cli.change('release', request);
    expect(code).toBe(0);
    expect(lines).toEqual([
      `released: ${PATH} of scope account-1, by ada`,
      expect.stringMatching(
        /^mind: its effect charge has begun up to \d+ s ago and is sent again under [0-9a-f-]{36}: /,
      ),
      'next: send the request again with the same key: it resumes behind its recovery point',
    ]);
    expect(errors).toHaveLength(1);
    expect(JSON.parse(errors[0] ?? '')).toMatchObject({
      ...{ level: 'warn', msg: 'a request was released by hand', operator: 'ada', was: 'parked', attempt: 10 },
      ...{ requestId: request.key.text, method: PATH, scope: 'account-1', recoveryPoint: 'charge#begun' },
    });
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'granted', takeover: true });
  });

  it('--dry-run says what would be done and changes nothing', async () => {
    const request = await opened.parked();
    const before = await opened.one(request);
    const { code, lines, errors } = await cli.change('release', request, '--dry-run');
    expect([code, errors]).toEqual([0, []]);
    expect(lines[0]).toBe(`would be released: ${PATH} of scope account-1`);
    expect({ ...(await opened.one(request)), ageMs: 0, leaseLeftMs: 0 }).toEqual({
      ...before,
      ageMs: 0,
      leaseLeftMs: 0,
    });
  });

  it('--dry-run needs no operator', async () => {
    const { key, scope } = await opened.parked();
    const words = ['--request-id', key.text, '--scope', scope, '--method', 'CreatePayment'];
    const { code, lines } = await cli.run(['release', ...words, '--dry-run']);
    expect([code, lines[0]]).toEqual([0, `would be released: ${PATH} of scope account-1`]);
    const refused = await cli.run(['expire', ...words, '--dry-run']);
    expect([refused.code, refused.lines[0]]).toEqual([1, expect.stringMatching(/^refused: it has no answer/)]);
  });

  it('refuses while an attempt runs, unless its lease is to be ended; that attempt then changes nothing', async () => {
    const request = claimRequest();
    const owner = await claim(opened.store, request);
    const refused = await cli.change('release', request);
    expect([refused.code, refused.errors]).toEqual([1, []]);
    expect(refused.lines[0]).toMatch(/^refused: an attempt of \S+ runs; 2\d s of the lease are left: .*--end-lease/);
    const { code, lines } = await cli.change('release', request, '--end-lease');
    expect([code, lines]).toEqual([
      0,
      [`released: ${PATH} of scope account-1, by ada`, 'next: send the request again with the same key: it runs anew'],
    ]);
    expect(await complete(opened.store, owner, answerOf('late'))).toBe(false);
    expect((await cli.change('release', request)).code).toBe(0);
  });

  it('refuses what has its answer, was removed, outlived its day, or is not there', async () => {
    const request = await opened.completed(datedKey(Date.now()));
    expect((await cli.change('release', request, '--end-lease')).lines).toEqual([
      'refused: it has its answer (OK): nothing to release; a retry with the same key gets it',
    ]);
    await cli.change('expire', request);
    expect((await cli.change('release', request)).lines[0]).toMatch(
      /^refused: its answer was removed: its key is refused/,
    );
    await opened.clear();
    const half = await opened.halfFinished(datedKey(Date.now()));
    await cli.keep(half);
    expect((await cli.change('release', half)).lines[0]).toMatch(/^refused: its day was dropped/);
    const none = await cli.change('release', claimRequest());
    expect([none.code, none.lines[0]]).toEqual([1, expect.stringMatching(/^nothing found under this key/)]);
  });

  it('refuses what a short name of a method leaves open', async () => {
    const request = await opened.parked();
    await opened.database.rows(
      `INSERT INTO idempotency_method (path, retention_ms, max_key_age_ms) VALUES ('/other.v1.Service/CreatePayment', 1, 1)`,
    );
    await opened.database.rows(`INSERT INTO idempotency_record_kept SELECT now(), r.* FROM idempotency_record AS r`);
    await opened.database.rows(
      `UPDATE idempotency_record_kept SET method = (SELECT id FROM idempotency_method WHERE path LIKE '/other%')`,
    );
    const words = ['--request-id', request.key.text, '--scope', 'account-1', '--operator', 'ada'];
    const { code, lines } = await cli.run(['release', ...words, '--method', 'CreatePayment']);
    expect([code, lines[0]]).toEqual([1, expect.stringMatching(/^refused: several are meant: .*; /)]);
    expect((await cli.run(['release', ...words, '--method', PATH])).code).toBe(0);
  });

  it('says so where somebody has it in hand, and where it moves while it is looked at', async () => {
    const request = await opened.parked();
    const other = await opened.database.pool.connect();
    try {
      await other.query('BEGIN');
      await other.query('UPDATE idempotency_record SET owner_token = gen_random_uuid()');
      const waiting = cli.change('release', request);
      expect((await waiting).lines[0]).toMatch(/^refused: a transaction has it in hand/);
      const moved = cli.change('release', request);
      await statementsWaiting(opened.database, 1);
      await other.query('COMMIT');
      expect((await moved).lines[0]).toMatch(/^refused: it has changed while it was looked at/);
    } finally {
      other.release();
    }
    expect((await cli.change('release', request)).code).toBe(0);
  });
});

describe('grpc-idempotency expire', () => {
  it('removes the answer; a dated key is dead, an undated one until its record goes', async () => {
    const dated = await opened.completed(datedKey(Date.now()));
    const { code, lines, errors } = await cli.change('expire', dated);
    expect([code, lines]).toEqual([
      0,
      [
        `expired: ${PATH} of scope account-1, by ada`,
        'next: its key is refused for ever (REQUEST_ID_EXPIRED); another try needs a new key',
      ],
    ]);
    expect(JSON.parse(errors[0] ?? '')).toMatchObject({ msg: 'a request was expired by hand', was: 'completed' });
    expect(await opened.store.claim(dated)).toMatchObject({ kind: 'expired' });
    const undated = await opened.completed();
    expect((await cli.change('expire', undated)).lines[1]).toMatch(
      /at least until \d{4}-\S+Z; it carries no date, .* run again/,
    );
    expect(await opened.store.claim(undated)).toMatchObject({ kind: 'expired' });
    expect((await cli.change('expire', dated)).lines[0]).toMatch(/^refused: it is expired already/);
  });

  it('--dry-run changes nothing', async () => {
    const request = await opened.completed();
    const { code, lines } = await cli.change('expire', request, '--dry-run');
    expect([code, lines[0]]).toEqual([0, `would be expired: ${PATH} of scope account-1`]);
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'completed' });
  });

  it('refuses what has no answer, each with the next step', async () => {
    const request = claimRequest();
    await claim(opened.store, request);
    expect((await cli.change('expire', request)).lines[0]).toMatch(/^refused: an attempt of \S+ runs; .* wait for it$/);
    await opened.endLease(request);
    expect((await cli.change('expire', request)).lines[0]).toMatch(/^refused: it has no answer, .* free for a retry$/);
    for (const one of [await opened.halfFinished(), await opened.parked()]) {
      const { code, lines } = await cli.change('expire', one);
      expect([code, lines[0]]).toEqual([
        1,
        expect.stringMatching(/^refused: it has no answer, and somebody may have been charged: /),
      ]);
    }
    const half = await opened.halfFinished(datedKey(Date.now()));
    await cli.keep(half);
    expect((await cli.change('expire', half)).lines[0]).toMatch(/^refused: its day was dropped/);
  });
});

describe('words that are not understood', () => {
  it.each([
    [['inspect'], '--request-id: expected the key'],
    [['inspect', '--request-id', ''], '--request-id: expected the key'],
    [['inspect', '--request-id', 'a,b'], '--request-id: expected one value without a comma'],
    [['inspect', '--key', 'x'], `'--key'`],
    [['inspect', '--request-id'], '--request-id'],
    [['inspect', 'x'], `'x'`],
    [['release', '--request-id', 'x'], '--scope: expected the account'],
    [['release', '--request-id', 'x', '--scope', 's'], '--method: expected the method'],
    [['release', '--request-id', 'x', '--scope', 's', '--method', 'm'], '--operator: expected who does this'],
    [['expire', '--request-id', 'x', '--scope', 's', '--method', 'm', '--operator', ' a'], '--operator: expected who'],
    [['expire', '--request-id', 'x', '--end-lease'], `'--end-lease'`],
    [['inspect', '--parked', '--request-id', 'x'], '--parked: expected neither'],
    [['inspect', '--parked', '--scope', 'x'], '--parked: expected neither'],
    [['inspect', '--parked', '--limit', '0'], '--limit: expected a whole number from 1 to 10000'],
    [['inspect', '--request-id', 'x', '--limit', '2'], '--limit: expected --parked'],
  ])('%j name what is wrong, with 2', async (words, message) => {
    const { code, lines, errors } = await cli.run(words);
    expect([code, lines]).toEqual([2, []]);
    expect(errors.at(-1)).toContain(message);
  });
});

it('a missing operator is told of in one line, with what to add', async () => {
  const words = ['release', '--request-id', 'x', '--scope', 's', '--method', 'm'];
  const { code, lines, errors, databases } = await cli.run(words);
  expect([code, lines, databases]).toEqual([2, [], []]);
  expect(errors).toEqual([expect.stringMatching(/^--operator: [^\n]* --operator ada [^\n]*$/)]);
});

it('names its database beside the result, without what is secret, but not for programs', async () => {
  const { key } = await opened.parked();
  const { connectionString } = opened.database;
  const url = new URL(connectionString);
  url.searchParams.set('sslpassword', 'hidden');
  const environment = { DATABASE_URL: url.href };
  const { databases, code } = await cli.run(['inspect', '--request-id', key.text], environment);
  expect(code).toBe(0);
  expect(databases).toEqual([`database: postgresql://${url.username}@${url.host}${url.pathname}`]);
  const json = await cli.run(['inspect', '--request-id', key.text, '--json'], environment);
  expect([json.databases, json.errors]).toEqual([[], []]);
});

it('the operator is USER where nothing else is said', async () => {
  const { key, scope } = await opened.parked();
  const words = ['release', '--request-id', key.text, '--scope', scope, '--method', 'CreatePayment'];
  expect((await cli.run(words, { USER: 'grace' })).lines[0]).toMatch(/, by grace$/);
});

it('a database without its tables is told of as such', async () => {
  const empty = await createTestDatabase({ empty: true });
  const { code, errors } = await cli.run(['inspect', '--request-id', randomUUID()], {
    DATABASE_URL: empty.connectionString,
  });
  await empty.drop();
  expect(code).toBe(1);
  expect(errors.join('\n')).toMatch(/^Migrations are missing in this database:\n[^]*npx grpc-idempotency migrate/);
});
