import { randomUUID } from 'node:crypto';
import { derivedKeyOf } from '../../src/idempotency/derived-request-id';
import { claimRequest, datedKey, policyOf } from '../support/claim-requests';
import { type OperatedStore, stepsOfCharge } from '../support/operated-store';
import { openOperatorCli, type OperatorCli, PATH, shown } from '../support/operator-cli';
import { answerOf, claim, complete } from '../support/store';

let cli: OperatorCli;
let opened: OperatedStore;

beforeAll(async () => {
  cli = await openOperatorCli();
  opened = cli.opened;
});
beforeEach(() => opened.clear());
afterAll(() => opened.close());

describe('grpc-idempotency inspect', () => {
  it('shows a parked request by its key alone, its steps and the keys of its effects, and how it is freed', async () => {
    const request = await opened.parked();
    const { code, lines, errors } = await cli.inspect(request.key.text);
    expect([code, errors]).toEqual([0, []]);
    expect(lines[0]).toBe(`${PATH} of scope account-1`);
    const charge = derivedKeyOf({ scope: request.scope, path: PATH, key: request.key }, 'charge');
    expect(shown(lines, 'state')).toBe('parked: half finished and tried 10 times, it waits for a person');
    expect(shown(lines, 'since')).toMatch(/^\d{4}-\S+Z, \d+ s ago$/);
    expect(shown(lines, 'attempt')).toMatch(/^10, last by \S+:\d+$/);
    expect(shown(lines, 'recovery point')).toBe('charge#begun');
    expect(shown(lines, 'steps')).toBe(`phase draft (done), effect charge (begun, key ${charge})`);
    expect(shown(lines, 'lease')).toBeUndefined();
    expect(shown(lines, 'expires')).toMatch(/Z$/);
    expect(shown(lines, 'next')).toBe(
      `repair what made it fail, then npx grpc-idempotency release --request-id ${request.key.text} --scope account-1 --method ${PATH}`,
    );
    expect(lines.join('\n')).not.toContain('secret');
  });

  it('shows what runs, what nobody runs, what is answered and what is removed, each with the next step', async () => {
    const running = claimRequest();
    const owner = await claim(opened.store, running);
    const ofRunning = (await cli.inspect(running.key.text)).lines;
    expect(shown(ofRunning, 'state')).toMatch(/^claimed: an attempt of \S+:\d+ runs$/);
    expect(shown(ofRunning, 'lease')).toMatch(/^2\d s left$/);
    expect(shown(ofRunning, 'next')).toMatch(/^wait: .* --end-lease$/);
    await opened.change(running, `lease_until = now() - interval '2 hours'`);
    const ofUnstarted = (await cli.inspect(running.key.text)).lines;
    expect(shown(ofUnstarted, 'state')).toBe('claimed: not begun, and nobody runs it');
    expect(shown(ofUnstarted, 'lease')).toBe('over since 2 h 0 min');
    expect(shown(ofUnstarted, 'next')).toBe('send the request again with the same key: it runs anew');

    const half = await opened.halfFinished();
    await opened.change(half, `lease_until = now() + interval '10 minutes'`);
    expect(shown((await cli.inspect(half.key.text)).lines, 'state')).toMatch(/^claimed: an attempt of \S+:\d+ runs$/);
    await opened.endLease(half);
    await opened.change(half, `request = '\\x00', resource = 'payments/1'`);
    const ofHalf = (await cli.inspect(half.key.text)).lines;
    expect(shown(ofHalf, 'state')).toBe('claimed: half finished, and nobody runs it');
    expect(shown(ofHalf, 'resource')).toBe('payments/1');
    expect(shown(ofHalf, 'request kept')).toBe('yes: a completer can resume it');
    expect(shown(ofHalf, 'next')).toMatch(
      /resumes behind its recovery point; a completer that runs does so by itself$/,
    );

    expect(await complete(opened.store, owner, answerOf('secret'))).toBe(true);
    const ofCompleted = (await cli.inspect(running.key.text)).lines;
    expect(shown(ofCompleted, 'state')).toBe('completed: it has its answer');
    expect(shown(ofCompleted, 'status')).toBe('OK');
    expect(shown(ofCompleted, 'answered')).toMatch(/Z$/);
    expect(shown(ofCompleted, 'next')).toMatch(/^a retry with the same key gets this answer; npx .* removes it$/);
    expect(ofCompleted.join('\n')).not.toContain('secret');
    await opened.change(running, 'answer_kept = false, response = NULL');
    expect(shown((await cli.inspect(running.key.text)).lines, 'status')).toBe(
      'OK, of which only the resource is recorded',
    );
    await opened.change(running, `state = 'expired'`);
    expect(shown((await cli.inspect(running.key.text)).lines, 'next')).toMatch(/would run again/);
  });

  it('shows the recovery point only of what is still to be finished: that of an answer is past', async () => {
    const request = claimRequest();
    const owner = await claim(opened.store, request);
    await opened.store.recordStepIfHeld(owner, stepsOfCharge());
    expect(shown((await cli.inspect(request.key.text)).lines, 'recovery point')).toBe('charge#begun');
    expect(await complete(opened.store, owner, answerOf('secret'))).toBe(true);
    const { lines } = await cli.inspect(request.key.text);
    expect(shown(lines, 'state')).toBe('completed: it has its answer');
    expect(shown(lines, 'recovery point')).toBeUndefined();
    const json = (await cli.inspect(request.key.text, '--json')).lines.join('');
    expect(json).toContain('"state":"completed"');
    expect(json).not.toContain('recoveryPoint');
  });

  it('says that the next call parks what has used up its attempts, counted from its first step', async () => {
    const request = await opened.halfFinished();
    const next = async (attempt: number): Promise<string | undefined> => {
      await opened.change(request, `attempt = ${attempt}`);
      return shown((await cli.inspect(request.key.text)).lines, 'next');
    };
    expect(await next(9)).toMatch(/^send the request again with the same key/);
    const end = `--request-id ${request.key.text} --scope account-1 --method ${PATH}`;
    expect(await next(10)).toBe(
      'it has used up its attempts: the next call parks it; repair what keeps it from finishing, then release it: ' +
        `npx grpc-idempotency release ${end}`,
    );
    await opened.change(request, `results = convert_to('[["phase","draft",null,3]]', 'UTF8')`);
    expect(await next(11)).toMatch(/^send the request again/);
    expect(await next(12)).toMatch(/^it has used up its attempts/);
    expect((await opened.store.claim(request)).kind).toBe('parked');
  });

  it('tells a request that waits after an outage from one that runs', async () => {
    const request = claimRequest();
    await opened.store.recordStepIfHeld(await claim(opened.store, request), stepsOfCharge());
    await opened.endLease(request);
    const outcome = await opened.store.claim(request);
    if (outcome.kind !== 'granted') throw new Error(outcome.kind);
    const instance = shown((await cli.inspect(request.key.text)).lines, 'attempt');
    expect(shown((await cli.inspect(request.key.text)).lines, 'state')).toMatch(/^claimed: an attempt of \S+ runs$/);

    expect(await opened.store.pauseIfHeld(outcome.claim)).toBe(2_000);
    await opened.change(request, `lease_until = now() + interval '10 minutes'`);
    const { lines } = await cli.inspect(request.key.text);
    expect(shown(lines, 'state')).toMatch(/^claimed: paused until \d{4}-\S+Z after an outage of the other side/);
    const until = Date.parse(/until (\S+)/.exec(shown(lines, 'state') ?? '')?.[1] ?? '');
    expect(Math.abs(until - Date.now() - 600_000)).toBeLessThan(60_000);
    expect(shown(lines, 'attempt')).toBe(instance);
    expect(shown(lines, 'next')).toMatch(/; if the outage is over: npx .* --end-lease$/);
    expect((await cli.change('release', request)).lines).toEqual([
      expect.stringMatching(
        /^refused: paused until .*: wait for it\. If the outage is over, --end-lease frees it now$/,
      ),
    ]);

    await opened.endLease(request);
    const half = (await cli.inspect(request.key.text)).lines;
    expect(shown(half, 'state')).toBe('claimed: half finished, and nobody runs it');
    expect((await opened.one(request)).pausedUntil).toBeUndefined();
    await claim(opened.store, request);
    expect(shown((await cli.inspect(request.key.text)).lines, 'state')).toMatch(
      /^claimed: an attempt of \S+:\d+ runs$/,
    );
  });

  it('finds a record that outlived its day, and says that it can only be settled at the other side', async () => {
    const request = await opened.halfFinished(datedKey(Date.now()));
    await cli.keep(request);
    const { code, lines } = await cli.inspect(request.key.text);
    expect(code).toBe(0);
    expect(shown(lines, 'day dropped')).toMatch(/Z$/);
    expect(shown(lines, 'expires')).toBeUndefined();
    expect(shown(lines, 'next')).toMatch(/^its day was dropped: .* neither resumed nor released\. Ask the other side/);
  });

  it('shows every scope and method, or those that are asked for', async () => {
    const { key } = claimRequest();
    for (const which of [{}, { scope: "it's" }, { policy: policyOf('RefundPayment') }]) {
      await claim(opened.store, { ...claimRequest(which), key });
    }
    const subjects = async (...words: readonly string[]) =>
      (await cli.inspect(key.text, ...words)).lines.filter((line) => !line.startsWith(' '));
    expect(await subjects()).toHaveLength(3);
    expect(await subjects('--method', 'CreatePayment')).toHaveLength(2);
    expect(await subjects('--method', PATH.slice(1), '--scope', 'account-1')).toEqual([`${PATH} of scope account-1`]);
    expect(await subjects('--method', 'Payment')).toEqual([expect.stringContaining('nothing found')]);
    const { lines } = await cli.inspect(key.text, '--scope', "it's");
    expect(shown(lines, 'next')).toContain(`--scope 'it'\\''s' --method`);
    const none = await cli.inspect(key.text, '--scope', 'nobody');
    expect([none.code, none.lines]).toEqual([
      1,
      [
        expect.stringMatching(
          /^nothing found for that scope and method; the key is recorded for .*CreatePayment of scope/,
        ),
      ],
    ]);
  });

  it.each([
    ['that may be used', datedKey(Date.now()), 'may be sent again with the same key'],
    ['that carries no date', randomUUID(), 'may be sent again with the same key'],
    ['that is too old', datedKey(Date.now() - 3 * 86_400_000), 'too old to be used first'],
  ])('says of a key %s that nothing is found, and what that means', async (_, requestId, meaning) => {
    const { code, lines } = await cli.inspect(requestId);
    expect([code, lines]).toEqual([1, [expect.stringMatching(`^nothing found under this key: .*${meaning}`)]]);
  });

  it('--json is one line that holds it all', async () => {
    const request = await opened.parked();
    const { code, lines } = await cli.inspect(request.key.text, '--json');
    expect([code, lines.length]).toEqual([0, 1]);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      records: [
        {
          ...{ method: PATH, scope: 'account-1', requestId: request.key.text, state: 'parked', attempt: 10 },
          steps: [
            { kind: 'phase', name: 'draft', isDone: true },
            { kind: 'effect', name: 'charge', isDone: false, derivedKey: expect.any(String) as string },
          ],
        },
      ],
    });
    expect(lines[0]).not.toContain((await opened.one(request)).ownerToken);
    expect(lines[0]).not.toContain('secret');
    const none = await cli.inspect(randomUUID(), '--json');
    expect([none.code, none.lines]).toEqual([1, ['{"records":[],"absent":"unused"}']]);
  });

  it('--parked lists what is parked, the oldest first, also what outlived its day so', async () => {
    expect(await cli.run(['inspect', '--parked'])).toMatchObject({ code: 0, lines: ['nothing is parked'], errors: [] });
    const kept = await opened.parked();
    await opened.change(kept, `created_at = now() - interval '9 days', resource = 'payments/1'`);
    await cli.keep(kept);
    const parked = await opened.parked();
    await opened.halfFinished();
    await opened.completed();
    const { code, lines } = await cli.run(['inspect', '--parked']);
    const at = String.raw`since \d{4}-\S+Z, .* ago  attempt 10  at charge#begun`;
    expect([code, lines]).toEqual([
      0,
      [
        expect.stringMatching(`^${kept.key.text}  ${PATH} of scope account-1  ${at}  payments/1  its day was dropped$`),
        expect.stringMatching(`^${parked.key.text}  ${PATH} of scope account-1  ${at}  -$`),
      ],
    ]);
    expect((await cli.run(['inspect', '--parked', '--limit', '1'])).lines).toEqual([
      lines[0],
      'there may be more; --limit shows them',
    ]);
    expect((await cli.run(['inspect', '--parked', '--method', 'CreatePayment'])).lines).toHaveLength(2);
    expect((await cli.run(['inspect', '--parked', '--method', 'Payment'])).lines).toEqual([
      'nothing is parked of method Payment',
    ]);
    const json = await cli.run(['inspect', '--parked', '--json']);
    expect([json.errors, json.databases, json.lines.length]).toEqual([[], [], 1]);
    expect(JSON.parse(json.lines[0] ?? '')).toMatchObject({
      records: [
        { requestId: kept.key.text, state: 'parked' },
        { requestId: parked.key.text, state: 'parked' },
      ],
    });
    expect(json.lines[0]).not.toContain('secret');
  });

  it('prints one line each, and nothing that a terminal would obey', async () => {
    const request = claimRequest({ scope: 'a\n\u001b[31mb' });
    await claim(opened.store, request);
    expect((await cli.inspect(request.key.text)).lines[0]).toBe(`${PATH} of scope a [31mb`);
  });
});
