import { credentials, status } from '@grpc/grpc-js';
import type { NetworkFault } from '../../src/card-network/faults';
import { inspectCommand } from '../../src/cli/inspect-command';
import { releaseCommand } from '../../src/cli/release-command';
import { runCommand } from '../../src/cli/run-command';
import { descriptorSet } from '../../src/gen/descriptor-set';
import {
  createPromiseClient,
  loadPolicies,
  newRequestId,
  RequestsServiceService,
  RequestState,
} from '../../src/idempotency/index';
import { paymentRequest } from '../support/payment-requests';
import { type PaymentsWithNetwork, startPaymentsWithNetwork } from '../support/payments-with-network';
import type { StockAnswer } from '../support/stock-client';
import { endLeases } from '../support/stored-record';

const PATH = '/payments.v1.PaymentsService/CreatePayment';

// Three services on one busy database.
jest.setTimeout(60_000);

let used: PaymentsWithNetwork;

beforeAll(async () => (used = await startPaymentsWithNetwork({ networkTimeoutMs: 300 })));
afterAll(() => used.stop());

const cli = async (...args: readonly string[]) => {
  const lines: string[] = [];
  const code = await runCommand({
    ...{ commands: [inspectCommand, releaseCommand], args },
    environment: { DATABASE_URL: used.database.connectionString, USER: 'ada' },
    ...{ print: (line) => void lines.push(line), printError: () => undefined },
  });
  return { code, text: lines.join('\n') };
};

const books = async () => {
  const [row] = await used.database.rows<Record<string, unknown>>(
    `SELECT
       (SELECT count(*) FROM payments)::int AS payments,
       (SELECT count(*) FROM payment_drafts)::int AS drafts,
       (SELECT count(*) FROM outbox_events)::int AS events,
       (SELECT count(*) FROM card_network_authorizations WHERE state = 'authorized')::int AS charges,
       (SELECT string_agg(state, ',') FROM idempotency_record WHERE request_id = $1) AS record`,
    [requestId],
  );
  return row;
};

const requestId = newRequestId();
const request = paymentRequest();
const pay = (): Promise<StockAnswer> => used.client.call({ method: 'CreatePayment', request, requestId });

it('a payment whose card network fails for long is parked, counted and seen; released by hand it is paid, with one charge', async () => {
  const requests = createPromiseClient(RequestsServiceService, `127.0.0.1:${used.service.grpcPort}`, {
    credentials: credentials.createInsecure(),
    policies: loadPolicies(descriptorSet),
  });
  const stateNow = async () => (await requests.getRequest({ method: PATH, requestId })).state;
  // It charges the card, and nobody hears of it; then it is away for ever.
  used.faults.push({ kind: 'lost_answer' }, ...Array.from({ length: 1_000 }, (): NetworkFault => ({ kind: 'outage' })));

  const answers: StockAnswer[] = [];
  do {
    answers.push(await pay());
    await endLeases(used.database);
  } while (answers.at(-1)?.error.reason !== 'REQUEST_PARKED' && answers.length < 30);

  expect(answers.at(-1)).toMatchObject({ code: status.FAILED_PRECONDITION, error: { reason: 'REQUEST_PARKED' } });
  expect(answers.map(({ error }) => error.reason).slice(0, -1)).toEqual(
    Array.from({ length: 10 }, () => 'CARD_NETWORK_UNAVAILABLE'),
  );
  const halfWay = { payments: 0, drafts: 1, events: 0, charges: 1 };
  expect(await books()).toEqual({ ...halfWay, record: 'parked' });
  const counted = (await used.service.metrics())
    .split('\n')
    .filter((line) => line.startsWith('idempotency_parked_total'));
  expect(counted.filter((line) => line.endsWith(' 1'))).toEqual([
    expect.stringContaining('grpc_method="CreatePayment"'),
  ]);
  expect(used.service.lines).toContainEqual(
    expect.objectContaining({
      level: 'error',
      method: PATH,
      msg: 'a request was tried too often and waits for a person',
    }),
  );
  expect(await stateNow()).toBe(RequestState.REQUEST_STATE_PARKED);
  const seen = await cli('inspect', '--request-id', requestId);
  expect(seen.text).toMatch(/state +parked: half finished and tried 10 times/);
  const [key] = await used.database.rows<{ request_id: string }>('SELECT request_id FROM card_network_authorizations');
  expect(seen.text).toContain(`phase draft (done), effect charge (begun, key ${key?.request_id})`);

  // The network is back, and yet nobody but a person goes on.
  used.faults.length = 0;
  expect(await pay()).toMatchObject({ error: { reason: 'REQUEST_PARKED' } });
  expect(await books()).toEqual({ ...halfWay, record: 'parked' });

  const command = / npx grpc-idempotency (release .*)$/m.exec(seen.text)?.[1]?.split(' ') ?? [];
  expect(await cli(...command)).toMatchObject({ code: 0, text: expect.stringContaining('by ada') as string });
  expect(await books()).toEqual({ ...halfWay, record: 'claimed' });

  const paid = await pay();
  expect(paid.code).toBe(status.OK);
  expect(await books()).toEqual({ payments: 1, drafts: 0, events: 1, charges: 1, record: 'completed' });
  expect(new Set(used.keysAsked)).toEqual(new Set([key?.request_id]));
  expect(await stateNow()).toBe(RequestState.REQUEST_STATE_COMPLETED);
  expect((await pay()).bytes).toEqual(paid.bytes);
  requests.close();
});
