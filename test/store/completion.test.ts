import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '../../src/gen/prisma/client';
import { openPostgresStore } from '../../src/idempotency/index';
import { claimRequest, policyOf } from '../support/claim-requests';
import {
  answerOf,
  claim,
  complete,
  LIMITS,
  openTestStore,
  TERMS,
  type TestStore,
  transactUnlessFenced,
} from '../support/store';

describe('the completion and the release of a claim (design 4.8)', () => {
  let opened: TestStore;

  beforeAll(async () => {
    opened = await openTestStore();
  });

  afterAll(() => opened.close());

  const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  const answers: readonly [string, Buffer][] = [
    ['of no bytes at all', Buffer.alloc(0)],
    ['of every byte value', everyByte],
    ['of zero bytes', Buffer.alloc(4_097)],
    ['of 1 MiB', Buffer.alloc(1_048_576, everyByte)],
  ];

  it.each(answers)('an answer %s is handed out again byte for byte (cases H2, H5)', async (_, response) => {
    const request = claimRequest();
    const claimed = await claim(opened.store, request);

    expect(await complete(opened.store, claimed, answerOf(response))).toBe(true);

    const outcome = await opened.store.claim(request);
    expect(outcome).toMatchObject({
      kind: 'completed',
      expiresAt: claimed.expiresAt,
      answer: { code: 0, message: '' },
    });
    const replayed = outcome.kind === 'completed' ? outcome.answer.response : undefined;
    expect(replayed?.equals(response)).toBe(true);
    expect((await opened.record(request))?.response?.equals(response)).toBe(true);
  });

  it('an answer without a message is not the same as an empty one', async () => {
    const request = claimRequest();
    const refusal = { code: 9, message: 'card declined', response: undefined, trailers: Buffer.of(0, 255, 1) };

    await complete(opened.store, await claim(opened.store, request), refusal);

    expect(await opened.store.claim(request)).toMatchObject({ kind: 'completed', answer: refusal });
    expect(await opened.record(request)).toMatchObject({ response: null, status_code: 9 });
  });

  it('a completed record is looked up as what it answered', async () => {
    const request = claimRequest();
    const claimed = await claim(opened.store, request);
    expect(await opened.store.lookUp(request)).toMatchObject({ kind: 'claimed' });

    await complete(opened.store, claimed, answerOf('done'));

    expect(await opened.store.lookUp(request)).toMatchObject({ kind: 'completed', answer: answerOf('done') });
    expect(await opened.store.lookUp(claimRequest())).toEqual({ kind: 'absent' });
  });

  it('an owner whose claim was taken over changes nothing any more', async () => {
    const request = claimRequest();
    const stale = await claim(opened.store, request);
    await opened.endLease(request);
    const owner = await claim(opened.store, request);

    expect(await complete(opened.store, stale, answerOf('stale'))).toBe(false);
    expect(await opened.store.releaseIfHeld(stale)).toBe(false);

    expect(await opened.record(request)).toMatchObject({ state: 'claimed', owner_token: owner.ownerToken });
    expect(await complete(opened.store, owner, answerOf('owner'))).toBe(true);
    expect(await complete(opened.store, stale, answerOf('stale'))).toBe(false);
    expect(await opened.store.claim(request)).toMatchObject({ kind: 'completed', answer: answerOf('owner') });
  });

  it('a completed record is neither completed again nor released', async () => {
    const request = claimRequest();
    const claimed = await claim(opened.store, request);
    await complete(opened.store, claimed, answerOf('first'));

    expect(await complete(opened.store, claimed, answerOf('second'))).toBe(false);
    expect(await opened.store.releaseIfHeld(claimed)).toBe(false);

    expect(await opened.store.claim(request)).toMatchObject({ kind: 'completed', answer: answerOf('first') });
  });

  it('each touches its own record only, though the token fits another', async () => {
    const requests = [claimRequest(), claimRequest(), claimRequest()] as const;
    const [completed, released] = [await claim(opened.store, requests[0]), await claim(opened.store, requests[1])];
    const { ownerToken } = await claim(opened.store, requests[2]);
    await opened.database.rows('UPDATE idempotency_record SET owner_token = $1 WHERE request_id = ANY ($2)', [
      ownerToken,
      requests.map(({ key }) => key.text),
    ]);

    expect(await complete(opened.store, { ...completed, ownerToken }, answerOf('done'))).toBe(true);
    expect(await opened.store.releaseIfHeld({ ...released, ownerToken })).toBe(true);

    expect(await opened.record(requests[0])).toMatchObject({ state: 'completed' });
    expect(await opened.record(requests[1])).toBeUndefined();
    expect(await opened.record(requests[2])).toMatchObject({ state: 'claimed' });
  });

  it('is refused on connections of the published adapter too, which knows nothing of our statements', async () => {
    const adapter = new PrismaPg({ connectionString: opened.database.connectionString });
    const client = new PrismaClient({ adapter });
    const store = await openPostgresStore({ business: client, records: client, policies: [policyOf('CreatePayment')] });
    await opened.database.rows('CREATE TABLE effect (request_id text)');
    const request = claimRequest();
    const claimed = await claim(store, request);
    const completeWithEffect = (token: string): Promise<boolean> =>
      transactUnlessFenced(store, async (tx) => {
        await tx.$executeRaw`INSERT INTO effect VALUES (${request.key.text})`;
        await store.completeIfHeld(tx, { ...claimed, ownerToken: token }, answerOf('paid'), TERMS);
      });
    try {
      expect(await completeWithEffect(randomUUID())).toBe(false);
      expect(await opened.database.count('effect')).toBe(0);
      expect(await completeWithEffect(claimed.ownerToken)).toBe(true);
      expect(await completeWithEffect(claimed.ownerToken)).toBe(false);
      expect(await opened.database.count('effect')).toBe(1);
    } finally {
      await client.$disconnect();
    }
  });

  it('a released key may be claimed again, by another request too', async () => {
    const request = claimRequest();
    expect(await opened.store.releaseIfHeld(await claim(opened.store, request))).toBe(true);
    expect(await opened.record(request)).toBeUndefined();

    const corrected = claimRequest({ requestId: request.key.text, orderId: 'order-2' });
    expect(await opened.store.claim(corrected)).toMatchObject({ kind: 'granted', claim: { attempt: 1 } });
  });

  it('a completion commits with the effects of its transaction or not at all', async () => {
    const request = claimRequest();
    const claimed = await claim(opened.store, request);

    const failing = opened.store.transaction(async (tx) => {
      await opened.store.completeIfHeld(tx, claimed, answerOf('never'), TERMS);
      throw new Error('rolled back');
    }, LIMITS);

    await expect(failing).rejects.toThrow('rolled back');
    expect(await opened.record(request)).toMatchObject({ state: 'claimed', response: null });
  });
});
