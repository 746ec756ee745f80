import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { CreatePaymentResponse } from '../../src/gen/proto/payments/v1/payments';
import { reject, StatusError } from '../../src/idempotency/index';
import { type AttemptService, recordPayment, startAttemptService, toldText } from '../support/attempt-service';
import { failWrites } from '../support/failing-writes';
import { endLeases } from '../support/stored-record';

describe('a handler that returns without complete (design 4.8)', () => {
  let service: AttemptService;

  beforeAll(async () => {
    service = await startAttemptService();
  });

  afterAll(() => service.stop());

  it('is refused, its caller learns nothing, and the line says what to write instead', async () => {
    service.handle({ createPayment: () => Promise.resolve({ payment: undefined }) });

    expect(toldText(await service.pay())).toBe('internal error');

    const faults = service.events.flatMap((event) => (event.type === 'fault' ? [event.what] : []));
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain('the handler returned without attempt.complete');
    expect(faults[0]).toContain('`return attempt.complete(async (tx) => …)`');
    expect(faults[0]).toContain('allow_detached');
    expect(service.events).toContainEqual(expect.objectContaining({ type: 'released' }));
    expect(await service.database.count('idempotency_record')).toBe(0);
  });
});

describe('a handler that returns without complete, where its policy says allow_detached (design 4.8)', () => {
  let service: AttemptService;
  let runs: number;

  beforeAll(async () => {
    service = await startAttemptService({ policy: { allowDetached: true } });
  });

  beforeEach(async () => {
    runs = 0;
    await service.database.rows('TRUNCATE payments, idempotency_record');
  });

  afterAll(() => service.stop());

  /** Pays by a connection of its own, as a service does that knows no transaction. */
  const payBeside = (after: () => Promise<void> = () => Promise.resolve()): void =>
    service.handle({
      createPayment: async (request, attempt): Promise<CreatePaymentResponse> => {
        runs += 1;
        const response = await recordPayment(service.connections.business, request, attempt);
        attempt.publish({ resource: `payments/${response.payment.paymentId}` });
        await after();
        return response;
      },
    });

  it('has its answer recorded by itself, with its resource, and replayed byte for byte', async () => {
    payBeside();
    const requestId = randomUUID();
    const first = await service.pay({ requestId });
    const second = await service.pay({ requestId });

    expect([first.code, second.code]).toEqual([status.OK, status.OK]);
    expect(second.bytes).toEqual(first.bytes);
    expect(first.trailers.get('idempotency-expires-at')).toHaveLength(1);
    expect(second.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(runs).toBe(1);
    expect(await service.database.rows('SELECT state, resource FROM idempotency_record')).toEqual([
      { state: 'completed', resource: `payments/${first.response?.payment.payment_id}` },
    ]);
  });

  it('may return a rejection, which is recorded too', async () => {
    service.handle({
      createPayment: () => {
        runs += 1;
        return Promise.resolve(reject(new StatusError(status.FAILED_PRECONDITION, 'declined')));
      },
    });
    const requestId = randomUUID();
    for (const answer of [await service.pay({ requestId }), await service.pay({ requestId })]) {
      expect(answer).toMatchObject({ code: status.FAILED_PRECONDITION, details: 'declined' });
    }
    expect(runs).toBe(1);
  });

  it('may still throw: the key is free again, though what it did beside is not undone', async () => {
    payBeside(() => Promise.reject(new StatusError(status.UNAVAILABLE, 'later')));
    const requestId = randomUUID();
    expect((await service.pay({ requestId })).code).toBe(status.UNAVAILABLE);
    expect(await service.database.count('idempotency_record')).toBe(0);
    payBeside();
    expect((await service.pay({ requestId })).code).toBe(status.OK);
    expect(await service.database.count('payments')).toBe(2);
  });

  it('that lost its claim meanwhile gets the answer of its heir and records none', async () => {
    const requestId = randomUUID();
    payBeside(async () => {
      if (runs > 1) return;
      await endLeases(service.database);
      await service.pay({ requestId });
    });

    const zombie = await service.pay({ requestId });

    expect(zombie.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect((await service.pay({ requestId })).bytes).toEqual(zombie.bytes);
    expect(runs).toBe(2);
    // What part 1 of the design promises is not promised here.
    expect(await service.database.count('payments')).toBe(2);
  });

  it('whose answer can not be recorded is not told as a success', async () => {
    payBeside();
    const failing = await failWrites(service.database, {
      ...{ table: 'idempotency_record', write: 'UPDATE', sqlState: 'P0001' },
    });
    try {
      expect(toldText(await service.pay())).toBe('internal error');
    } finally {
      await failing.remove();
    }
    expect(service.events).toContainEqual(
      expect.objectContaining({
        ...{ type: 'fault', what: 'the answer of a detached handler could not be recorded, so its retry runs again' },
      }),
    );
  });

  it('that swallowed the failure of its own completion is not told as a success, and nothing is recorded', async () => {
    service.handle({
      createPayment: (request, attempt) => {
        const failing = attempt.complete(async (tx) => {
          await recordPayment(tx, request, attempt);
          throw new Error('broken inside');
        });
        return failing.catch(() => ({ payment: undefined }));
      },
    });
    expect(toldText(await service.pay())).toBe('internal error');
    expect(await service.database.count('payments')).toBe(0);
    expect(await service.database.count('idempotency_record')).toBe(0);
  });

  it('may complete all the same, and then all promises hold', async () => {
    service.handle({
      createPayment: (request, attempt) =>
        attempt.complete(async (tx) => {
          runs += 1;
          return recordPayment(tx, request, attempt);
        }),
    });
    const requestId = randomUUID();
    const first = await service.pay({ requestId });
    expect((await service.pay({ requestId })).bytes).toEqual(first.bytes);
    expect(runs).toBe(1);
    expect(await service.database.count('payments')).toBe(1);
  });
});

describe('a keyless call of a method that may answer without complete', () => {
  let service: AttemptService;
  let transactions = 0;

  beforeAll(async () => {
    service = await startAttemptService({
      policy: { allowDetached: true, key: 'OPTIONAL', level: 'IDEMPOTENT' },
      wrapStore: (store) => ({
        ...store,
        transaction: (work, limits) => {
          transactions += 1;
          return store.transaction(work, limits);
        },
      }),
    });
  });

  afterAll(() => service.stop());

  it('has nothing recorded, so no transaction is opened for it', async () => {
    service.handle({ createPayment: () => Promise.resolve({ payment: undefined }) });
    expect((await service.pay({ requestId: undefined })).code).toBe(status.OK);
    expect(transactions).toBe(0);
    // The same with a key, which is recorded.
    expect((await service.pay()).code).toBe(status.OK);
    expect(transactions).toBe(1);
  });
});
