import { randomUUID } from 'node:crypto';
import { credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import type { ListPaymentsRequest, ListPaymentsResponse } from '../../src/gen/proto/payments/v1/payments';
import { readErrorDetails } from '../../src/idempotency/index';
import { createOutbox } from '../../src/outbox/outbox';
import { createStandInAuthorizer } from '../../src/payments/authorizer';
import { pageToken } from '../../src/payments/page-token';
import { createPaymentsClient, type PaymentsClient } from '../../src/payments/payments-client';
import { createPaymentsService } from '../../src/payments/payments-service';
import { type AttemptService, startAttemptService } from '../support/attempt-service';

describe('ListPayments', () => {
  let service: AttemptService;
  let payments: PaymentsClient;

  beforeAll(async () => {
    service = await startAttemptService({ principal: ({ metadata }) => metadata.get('account')[0]?.toString() });
    service.handle(
      createPaymentsService({
        prisma: service.connections.business,
        authorizer: createStandInAuthorizer(),
        outbox: createOutbox(),
        onPaymentCreated: () => undefined,
      }),
    );
    payments = createPaymentsClient(`127.0.0.1:${service.port}`, { credentials: credentials.createInsecure() });
  });

  afterAll(async () => {
    payments.close();
    await service.stop();
  });

  /** An account that nobody else uses. */
  const newAccount = (): string => `account-${randomUUID()}`;

  /** Writes payments that are all as old as each other; their ids, in no order. */
  const insert = async (account: string, count: number, change: { orderId?: string; ageMs?: number } = {}) => {
    const { orderId = 'order', ageMs = 0 } = change;
    const rows = await service.database.rows<{ id: string }>(
      `INSERT INTO payments (payment_id, scope, order_id, amount_minor, currency, payment_method, state,
         authorization_id, etag, created_at)
       SELECT gen_random_uuid(), $1, $2, 1250, 'EUR', 'tok_visa', 'cancelled', 'auth', gen_random_uuid(),
         now() - $4::float8 * interval '1 millisecond'
       FROM generate_series(1, $3)
       RETURNING payment_id::text AS id`,
      [account, orderId, count, ageMs],
    );
    return rows.map(({ id }) => id);
  };

  const list = (account: string, request: Partial<ListPaymentsRequest> = {}): Promise<ListPaymentsResponse> => {
    const metadata = new Metadata();
    metadata.set('account', account);
    return payments.listPayments({ pageSize: 0, pageToken: '', orderId: '', ...request }, { metadata });
  };

  const idsOf = (page: ListPaymentsResponse): string[] => page.payments.map(({ paymentId }) => paymentId);

  /** All pages from a token on. */
  const rest = async (account: string, request: Partial<ListPaymentsRequest>): Promise<string[][]> => {
    const page = await list(account, request);
    if (page.nextPageToken === '') return [idsOf(page)];
    return [idsOf(page), ...(await rest(account, { ...request, pageToken: page.nextPageToken }))];
  };

  const violationsOf = async (listed: Promise<unknown>) => {
    const error = await listed.then(
      () => Promise.reject(new Error('expected a refusal')),
      (refused: ServiceError) => refused,
    );
    expect(error.code).toBe(status.INVALID_ARGUMENT);
    return readErrorDetails(error.metadata).violations.map(({ field }) => field);
  };

  it('shows nothing, and no next page, to an account that has no payments', async () => {
    expect(await list(newAccount())).toMatchObject({ payments: [], nextPageToken: '' });
  });

  it('shows the newest first, also where they differ by less than a millisecond', async () => {
    const account = newAccount();
    const inserted = await insert(account, 4);
    for (const [position, id] of inserted.entries()) {
      await service.database.rows(
        `UPDATE payments SET created_at = '2026-11-30 12:00:00Z'::timestamptz + $2::int * interval '1 microsecond'
         WHERE payment_id = $1`,
        [id, position],
      );
    }
    expect((await rest(account, { pageSize: 1 })).flat()).toEqual([...inserted].reverse());
  });

  it('shows each payment once, page by page, where all are equally old: by their ids, whatever index there is', async () => {
    const account = newAccount();
    const inserted = await insert(account, 25);
    const index = `FROM pg_indexes WHERE indexname = 'payments_scope_created'`;
    const [found] = await service.database.rows<{ indexdef: string }>(`SELECT indexdef ${index}`);
    await service.database.rows('DROP INDEX payments_scope_created');
    const pages = await rest(account, { pageSize: 10 });
    await service.database.rows(found?.indexdef ?? '');
    expect(pages.map((page) => page.length)).toEqual([10, 10, 5]);
    expect(pages.flat()).toEqual([...inserted].sort().reverse());
  });

  it('says that there is no next page when the last one is full', async () => {
    const account = newAccount();
    await insert(account, 4);
    expect((await rest(account, { pageSize: 2 })).map((page) => page.length)).toEqual([2, 2]);
  });

  it('goes on where a page ended, whatever was paid and cancelled meanwhile', async () => {
    const account = newAccount();
    const old = await insert(account, 6, { ageMs: 60_000 });
    const first = await list(account, { pageSize: 2 });
    await insert(account, 5);
    await service.database.rows('UPDATE payments SET etag = gen_random_uuid() WHERE scope = $1', [account]);
    const later = await rest(account, { pageSize: 2, pageToken: first.nextPageToken });
    expect(later.map((page) => page.length)).toEqual([2, 2]);
    expect([...idsOf(first), ...later.flat()].sort()).toEqual([...old].sort());
  });

  it('shows 50 where no size is given, and up to 500', async () => {
    const account = newAccount();
    await insert(account, 501);
    expect((await list(account, { pageSize: 0 })).payments).toHaveLength(50);
    expect((await list(account, { pageSize: 1 })).payments).toHaveLength(1);
    expect((await list(account, { pageSize: 500 })).payments).toHaveLength(500);
  });

  test.each([501, -1, 2_147_483_647, -2_147_483_648])('refuses a size of %d', async (pageSize) => {
    expect(await violationsOf(list(newAccount(), { pageSize }))).toEqual(['page_size']);
  });

  test.each(['a\0b', 'o'.repeat(129)])('refuses what no order can be: %j', async (orderId) => {
    expect(await violationsOf(list(newAccount(), { orderId }))).toEqual(['order_id']);
  });

  it('shows the payments of one order, page by page', async () => {
    const account = newAccount();
    const wanted = await insert(account, 3, { orderId: 'wanted' });
    await insert(account, 3, { orderId: 'other' });
    const pages = await rest(account, { orderId: 'wanted', pageSize: 2 });
    expect(pages.map((page) => page.length)).toEqual([2, 1]);
    expect(pages.flat().sort()).toEqual([...wanted].sort());
    expect(await list(account, { orderId: 'none' })).toMatchObject({ payments: [], nextPageToken: '' });
  });

  it('shows nothing of another account, be it of the same order', async () => {
    const [one, other] = [newAccount(), newAccount()];
    const own = await insert(one, 1, { orderId: 'order-1' });
    await insert(other, 2, { orderId: 'order-1' });
    expect(idsOf(await list(one))).toEqual(own);
    expect(idsOf(await list(one, { orderId: 'order-1' }))).toEqual(own);
  });

  it('goes on behind a payment of another account as behind one that never was, by a token made up for it', async () => {
    const [one, other] = [newAccount(), newAccount()];
    await insert(other, 1, { ageMs: 60_000 });
    await insert(one, 2);
    const [foreign = ''] = await insert(other, 1);
    await insert(one, 2, { ageMs: -60_000 });
    const behind = async (id: string) =>
      idsOf(await list(one, { pageToken: pageToken({ scope: one, orderId: '' }, id) }));
    expect(await behind(foreign)).toEqual(await behind(randomUUID()));
  });

  describe('refuses a page token', () => {
    let account: string;
    let token: string;

    beforeAll(async () => {
      account = newAccount();
      await insert(account, 3);
      token = (await list(account, { pageSize: 1 })).nextPageToken;
    });

    test.each<[string, () => string]>([
      ['that was cut off', () => token.slice(0, -1)],
      ['that was lengthened', () => `${token}A`],
      ['of which one character was changed', () => (token.startsWith('A') ? 'B' : 'A') + token.slice(1)],
      ['that is the id of a payment', () => randomUUID()],
      ['that is no token', () => "'; DROP TABLE payments; --"],
      ['of NUL', () => '\0'],
      ['of 70 KB', () => 'A'.repeat(70_000)],
    ])('%s', async (_, changed) => {
      expect(await violationsOf(list(account, { pageToken: changed() }))).toEqual(['page_token']);
    });

    it('of the list of another order, and of another account', async () => {
      expect(await violationsOf(list(account, { pageToken: token, orderId: 'order' }))).toEqual(['page_token']);
      expect(await violationsOf(list(newAccount(), { pageToken: token }))).toEqual(['page_token']);
    });

    it('and a size at once, naming both', async () => {
      const refused = list(account, { pageToken: 'x', pageSize: -1 });
      expect(await violationsOf(refused)).toEqual(['page_size', 'page_token']);
    });
  });
});
