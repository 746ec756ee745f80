import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { paymentRequest } from '../support/payment-requests';
import { makeTemporaryDirectory } from '../support/postgres';
import { pythonObstacle, runPython } from '../support/python';
import { useService } from '../support/use-service';

/** One call as test/python tells it. */
interface Outcome {
  readonly code: string;
  /** In hexadecimal digits. */
  readonly bytes: string | null;
  readonly replayed: boolean;
  readonly details: string;
}

/** The cases of foreign_bytes.py. */
const SAME = ['map entries swapped', 'fields reversed', 'default written', 'compressed'];
const ANOTHER = ['another value of an unknown field', 'amounts above 2^53'];

const obstacle = pythonObstacle();
if (obstacle !== undefined) {
  // A build server has what it takes, or the proof is missing there.
  if (process.env['CI']) throw new Error(obstacle);
  console.info(`Skipped: the tests with a client in Python. ${obstacle}`);
}

(obstacle === undefined ? describe : describe.skip)('a client in Python', () => {
  const used = useService();

  const replay = (paid: Outcome | undefined) => ({ code: 'OK', bytes: paid?.bytes, replayed: true, details: '' });
  const REUSED = { code: 'FAILED_PRECONDITION', bytes: null, replayed: false };

  it('that assembles its bytes by hand is answered by what they mean', async () => {
    const outcomes = (await runPython('foreign_bytes.py', String(used.service.grpcPort))) as Record<string, Outcome[]>;
    expect(Object.keys(outcomes)).toEqual([...SAME, ...ANOTHER]);
    const answers = Object.entries(outcomes).map(([name, [paid, again]]) => {
      expect(paid).toMatchObject({ code: 'OK', replayed: false });
      return { name, again, replayed: replay(paid) };
    });
    for (const { name, again, replayed } of answers) {
      if (SAME.includes(name)) expect({ name, again }).toEqual({ name, again: replayed });
      else expect({ name, again }).toMatchObject({ name, again: REUSED });
    }
    expect(await used.database.count('payments')).toBe(6);
  });

  it('with messages of protobuf pays, retries, and reads why a reused key is refused', async () => {
    const directory = await makeTemporaryDirectory();
    const file = join(directory, 'descriptor-set.binpb');
    await writeFile(file, descriptorSet);
    const [requestId, orderId] = [randomUUID(), `order-${randomUUID()}`];
    const told = (await runPython('stock_client.py', String(used.service.grpcPort), file, requestId, orderId)) as {
      readonly [name in 'paid' | 'retried' | 'reused']: Outcome;
    } & { readonly paymentId: string; readonly errorInfo: unknown };
    await rm(directory, { recursive: true, force: true });

    expect(told.paid).toMatchObject({ code: 'OK', replayed: false });
    expect(told.retried).toEqual(replay(told.paid));
    expect(told.reused).toMatchObject(REUSED);
    expect(told.errorInfo).toEqual({ reason: 'REQUEST_ID_REUSED', domain: 'idempotency.v1' });
    expect(await used.database.count(`payments WHERE order_id = '${orderId}'`)).toBe(1);

    // What one language paid, another one's retry finds.
    const request = paymentRequest({ order_id: orderId });
    const again = await used.client.call({ method: 'CreatePayment', request, requestId });
    expect(again.code).toBe(status.OK);
    expect(again.response?.payment.payment_id).toBe(told.paymentId);
    expect(again.trailers.get('idempotent-replayed')).toEqual(['true']);
  });
});
