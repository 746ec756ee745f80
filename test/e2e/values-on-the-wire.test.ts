import { createHash, randomUUID } from 'node:crypto';
import { WireType } from '@bufbuild/protobuf/wire';
import { status } from '@grpc/grpc-js';
import { createForeignClient, type ForeignAnswer } from '../support/foreign-client';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { serve, type ServeOptions } from '../support/served';
import { BREAK, ECHO, TAKE, valuesService } from '../support/values-service';
import { int64, string, wire, type Write } from '../support/wire-fields';

const uint64 =
  (number: number, value: bigint): Write =>
  (writer) =>
    writer.tag(number, WireType.Varint).uint64(value);

describe('what is at the edge of its type, through servers of which each is ended after its call', () => {
  let database: TestDatabase;
  let service: Omit<ServeOptions, 'connectionString'>;

  beforeAll(async () => {
    service = valuesService();
    database = await createTestDatabase();
    await database.rows('CREATE TABLE taken (at timestamptz DEFAULT now())');
  });

  beforeEach(() => database.rows('TRUNCATE taken, idempotency_record'));
  afterAll(() => database.drop());

  const send = async (path: string, bytes: Uint8Array, requestId: string): Promise<ForeignAnswer> => {
    const served = await serve({ ...service, connectionString: database.connectionString });
    const client = createForeignClient(served.port);
    try {
      return await client.send(path, bytes, requestId);
    } finally {
      client.close();
      await served.stop();
    }
  };

  const expectReplays = async (path: string, bytes: Uint8Array, requestId: string, answer: Uint8Array) => {
    expect(await send(path, bytes, requestId)).toMatchObject({ code: status.OK, replayed: false });
    for (let retry = 1; retry <= 3; retry += 1) {
      expect(await send(path, bytes, requestId)).toEqual({
        ...{ code: status.OK, bytes: Buffer.from(answer), replayed: true, reason: undefined },
      });
    }
    expect(await database.count('taken')).toBe(1);
    const hash = createHash('sha256').update(answer).digest('hex');
    expect(
      await database.rows(`SELECT state, encode(sha256(response), 'hex') AS hash FROM idempotency_record`),
    ).toEqual([{ state: 'completed', hash }]);
  };

  const MISMATCH = { code: status.FAILED_PRECONDITION, reason: 'REQUEST_ID_REUSED', bytes: undefined };

  it.each([
    ['2^63 - 1', int64(2, 2n ** 63n - 1n), int64(2, 2n ** 63n - 2n)],
    ['-2^63', int64(2, -(2n ** 63n)), int64(2, -(2n ** 63n) + 1n)],
    ['2^64 - 1', uint64(3, 2n ** 64n - 1n), uint64(3, 2n ** 64n - 2n)],
  ])('%s is answered and told again byte for byte, and its neighbour is another (case E3)', async (_, edge, next) => {
    const requestId = randomUUID();
    await expectReplays(ECHO, wire(edge), requestId, wire(edge));
    expect(await send(ECHO, wire(next), requestId)).toMatchObject(MISMATCH);
    expect(await database.count('taken')).toBe(1);
  });

  it('an empty text and none are two requests where the field has presence (case E1)', async () => {
    const [unset, empty] = [randomUUID(), randomUUID()];
    await send(ECHO, wire(), unset);
    await send(ECHO, wire(string(1, '')), empty);
    expect(await send(ECHO, wire(string(1, '')), unset)).toMatchObject(MISMATCH);
    expect(await send(ECHO, wire(), empty)).toMatchObject(MISMATCH);
    expect(await database.count('taken')).toBe(2);
  });

  it('google.protobuf.Empty is an answer, and is told again with no byte (case H5)', async () => {
    await expectReplays(TAKE, wire(string(1, 'x')), randomUUID(), Buffer.alloc(0));
  });

  it('one byte, which is no message, is told again as it is: bytes are not looked into (case H2)', async () => {
    await expectReplays(BREAK, wire(string(1, 'x')), randomUUID(), Buffer.of(0));
  });
});
