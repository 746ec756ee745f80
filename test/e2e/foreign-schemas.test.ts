import { randomUUID } from 'node:crypto';
import { WireType } from '@bufbuild/protobuf/wire';
import { status } from '@grpc/grpc-js';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { PaymentsServiceService } from '../../src/gen/proto/payments/v1/payments';
import { recordPayment } from '../support/attempt-service';
import { createForeignClient, type ForeignAnswer } from '../support/foreign-client';
import { INSTALLMENTS, newerPayments, type NewerRequest } from '../support/newer-payments';
import { ADD, numbersService } from '../support/numbers-service';
import { paymentFields } from '../support/payment-bytes';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { serve, type ServeOptions } from '../support/served';
import { both, int32, raw, wire } from '../support/wire-fields';

const CREATE_PAYMENT = '/payments.v1.PaymentsService/CreatePayment';

type Service = Omit<ServeOptions, 'connectionString'>;

let database: TestDatabase;
beforeEach(async () => (database = await createTestDatabase()));
afterEach(() => database.drop());

/** Starts a service, sends it one call, and stops it. */
async function sendTo(service: Service, path: string, bytes: Uint8Array, requestId: string): Promise<ForeignAnswer> {
  const served = await serve({ ...service, connectionString: database.connectionString });
  const client = createForeignClient(served.port);
  try {
    return await client.send(path, bytes, requestId);
  } finally {
    client.close();
    await served.stop();
  }
}

function expectReplay(paid: ForeignAnswer, again: ForeignAnswer): void {
  expect(paid).toMatchObject({ code: status.OK, replayed: false });
  expect(again).toEqual({ code: status.OK, bytes: paid.bytes, replayed: true, reason: undefined });
}

describe('a request with a repeated number', () => {
  const packed = wire(raw(1, WireType.LengthDelimited, 3, 5, 6, 7));
  const unpacked = wire(int32(1, 5), int32(1, 6), int32(1, 7));
  let service: Service;

  beforeAll(() => (service = numbersService()));
  beforeEach(() => database.rows('CREATE TABLE sums (total integer)'));

  it.each([
    ['packed, then unpacked', packed, unpacked],
    ['unpacked, then packed', unpacked, packed],
    ['with a default left out, then written', packed, wire(raw(1, WireType.LengthDelimited, 3, 5, 6, 7), int32(2, 0))],
  ])('%s, is the same', async (_, first, second) => {
    const requestId = randomUUID();
    const added = await sendTo(service, ADD, first, requestId);
    expect(added.bytes).toEqual(Buffer.from(wire(int32(1, 18))));
    expectReplay(added, await sendTo(service, ADD, second, requestId));
    expect(await database.count('sums')).toBe(1);
  });

  it('in another order, is another', async () => {
    const requestId = randomUUID();
    await sendTo(service, ADD, packed, requestId);
    const other = await sendTo(service, ADD, wire(int32(1, 7), int32(1, 6), int32(1, 5)), requestId);
    expect(other).toMatchObject({ code: status.FAILED_PRECONDITION, reason: 'REQUEST_ID_REUSED', bytes: undefined });
    expect(await database.count('sums')).toBe(1);
  });
});

describe('a client of the next release', () => {
  const { orderId, amount, currency, paymentMethod, metadata } = paymentFields('order-1');
  // Only who knows the field can tell that these may also come packed: the canonical form changes with the upgrade.
  const installments = both(int32(INSTALLMENTS, 5), int32(INSTALLMENTS, 6), int32(INSTALLMENTS, 7));
  const bytes = wire(orderId, amount, currency, paymentMethod, installments, metadata);
  const seen: (readonly number[] | undefined)[] = [];

  const older: Service = {
    descriptorSet,
    add: (idempotency, server) =>
      idempotency.addService(server, PaymentsServiceService, {
        createPayment: (request, attempt) => attempt.complete((tx) => recordPayment(tx, request, attempt)),
      }),
  };
  const newer = (): Service => {
    const { definition, ...rest } = newerPayments();
    return {
      ...rest,
      add: (idempotency, server) =>
        idempotency.addService(server, definition, {
          createPayment: (request: NewerRequest, attempt) => {
            seen.push(request.installments);
            return attempt.complete((tx) => recordPayment(tx, request, attempt));
          },
        }),
    };
  };
  beforeEach(() => void seen.splice(0));

  it('that paid at an older server gets its answer from the upgraded one', async () => {
    const requestId = randomUUID();
    const paid = await sendTo(older, CREATE_PAYMENT, bytes, requestId);
    expectReplay(paid, await sendTo(newer(), CREATE_PAYMENT, bytes, requestId));
    expect(seen).toEqual([]);
    expect(await database.count('payments')).toBe(1);
  });

  it('that paid at an upgraded server gets its answer from one that was not upgraded yet', async () => {
    const requestId = randomUUID();
    const paid = await sendTo(newer(), CREATE_PAYMENT, bytes, requestId);
    expect(seen).toEqual([[5, 6, 7]]);
    expectReplay(paid, await sendTo(older, CREATE_PAYMENT, bytes, requestId));
    expect(await database.count('payments')).toBe(1);
  });
});
