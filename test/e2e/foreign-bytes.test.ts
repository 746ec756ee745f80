import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { createForeignClient, type ForeignAnswer, type ForeignClient } from '../support/foreign-client';
import { note, type PaymentFields, paymentFields } from '../support/payment-bytes';
import { useService } from '../support/use-service';
import { both, int32, message, string, wire, type Write } from '../support/wire-fields';

const CREATE_PAYMENT = '/payments.v1.PaymentsService/CreatePayment';

// Cases E1 and E2: other languages write the same message in other bytes.
describe('bytes assembled by hand, sent twice with one key', () => {
  const used = useService();
  let client: ForeignClient;
  let gzip: ForeignClient;
  beforeAll(() => {
    client = createForeignClient(used.service.grpcPort);
    gzip = createForeignClient(used.service.grpcPort, { gzip: true });
  });
  afterAll(() => [client, gzip].forEach((each) => each.close()));

  /** A first request that pays, then another with its key; tells both and how many payments there are of the two. */
  async function sendTwice(first: Uint8Array, second: Uint8Array, secondClient = client) {
    const before = await used.database.count('payments');
    const mismatchesBefore = await mismatches();
    const requestId = randomUUID();
    const paid = await client.send(CREATE_PAYMENT, first, requestId);
    expect(paid).toMatchObject({ code: status.OK, replayed: false });
    const again = await secondClient.send(CREATE_PAYMENT, second, requestId);
    const told = again.reason === 'REQUEST_ID_REUSED' ? 1 : 0;
    expect((await mismatches()) - mismatchesBefore).toBe(told);
    return { paid, again, payments: (await used.database.count('payments')) - before };
  }

  /** How many of them the service has counted so far. */
  async function mismatches(): Promise<number> {
    const series = /^idempotency_requests_total\{.*grpc_method="CreatePayment",outcome="mismatch"\} (\d+)$/m;
    return Number(series.exec(await used.service.metrics())?.[1]);
  }

  const plain = ({ orderId, amount, currency, paymentMethod, metadata }: PaymentFields): Uint8Array =>
    wire(orderId, amount, currency, paymentMethod, metadata);

  const SAME: readonly (readonly [string, (fields: PaymentFields) => Uint8Array])[] = [
    [
      'with the entries of a map swapped',
      (fields) => plain({ ...fields, metadata: both(note('shop', 'berlin'), note('basket', '7')) }),
    ],
    [
      'with the fields reversed',
      ({ orderId, amount, currency, paymentMethod, metadata }) =>
        wire(metadata, paymentMethod, currency, amount, orderId),
    ],
    [
      'with a default written before the value that replaces it',
      (fields) => wire(string(3, ''), int32(2, 0), plainly(plain(fields))),
    ],
    [
      'with the time of sending, which is not compared',
      (fields) => wire(plainly(plain(fields)), message(6, int32(1, 5))),
    ],
  ];

  it.each(SAME)('%s are the same request', async (_, write) => {
    const fields = paymentFields(`order-${randomUUID()}`);
    const { paid, again, payments } = await sendTwice(plain(fields), write(fields));
    expectReplay(paid, again);
    expect(payments).toBe(1);
  });

  it('with an empty value written or left out are the same request', async () => {
    const fields = paymentFields(`order-${randomUUID()}`);
    const written = plain({ ...fields, metadata: message(5, string(1, 'gift'), string(2, '')) });
    const leftOut = plain({ ...fields, metadata: message(5, string(1, 'gift')) });
    const { paid, again, payments } = await sendTwice(written, leftOut);
    expect(leftOut.length).toBeLessThan(written.length);
    expectReplay(paid, again);
    expect(payments).toBe(1);
  });

  it('compressed or not are the same request', async () => {
    const bytes = plain(paymentFields(`order-${randomUUID()}`));
    const { paid, again, payments } = await sendTwice(bytes, bytes, gzip);
    expectReplay(paid, again);
    expect(payments).toBe(1);
  });

  it('with a field that the server does not know, of another value, are another request', async () => {
    const fields = plain(paymentFields(`order-${randomUUID()}`));
    const withUnknown = (value: number) => wire(plainly(fields), int32(99, value));
    const { again, payments } = await sendTwice(withUnknown(1), withUnknown(2));
    expect(again).toMatchObject({ code: status.FAILED_PRECONDITION, reason: 'REQUEST_ID_REUSED', bytes: undefined });
    expect(payments).toBe(1);
  });

  it('with amounts above 2^53 that differ by one are another request', async () => {
    const order = `order-${randomUUID()}`;
    const amount = 2n ** 53n;
    // For a double they are one number.
    expect(Number(amount)).toBe(Number(amount + 1n));
    const { again, payments } = await sendTwice(
      plain(paymentFields(order, amount)),
      plain(paymentFields(order, amount + 1n)),
    );
    expect(again).toMatchObject({ code: status.FAILED_PRECONDITION, reason: 'REQUEST_ID_REUSED', bytes: undefined });
    expect(payments).toBe(1);
  });
});

/** The bytes of several fields, written as they are. */
function plainly(bytes: Uint8Array): Write {
  return (writer) => writer.raw(bytes);
}

function expectReplay(paid: ForeignAnswer, again: ForeignAnswer): void {
  expect(again).toEqual({ code: status.OK, bytes: paid.bytes, replayed: true, reason: undefined });
}
