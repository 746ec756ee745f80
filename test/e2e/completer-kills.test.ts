import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { type AttemptService, startAttemptService } from '../support/attempt-service';
import { startHalfWayProcess } from '../support/half-way-process';
import { CREATE_CHARGES, payInSteps, POINTS } from '../support/pay-in-steps';
import { paymentRequest } from '../support/payment-requests';
import { createStockClient } from '../support/stock-client';
import { endLeases } from '../support/stored-record';

// Each starts a process of its own.
jest.setTimeout(60_000);

let service: AttemptService;
beforeAll(async () => {
  service = await startAttemptService({ policy: { resume: true } });
  service.handle({ createPayment: payInSteps(service.database, () => Promise.resolve()) });
  await service.database.rows(CREATE_CHARGES);
});
afterAll(() => service.stop());
beforeEach(() => service.database.rows('TRUNCATE idempotency_record, payments, charges'));

it.each(POINTS)(
  'killed with -9 when it has %s, a payment is finished by the completer of another process',
  async (stopsAt) => {
    const victim = await startHalfWayProcess({ connectionString: service.database.connectionString, stopsAt });
    const caller = createStockClient(victim.port);
    const [requestId, request] = [randomUUID(), paymentRequest({ order_id: 'order-1' })];
    try {
      const unanswered = caller.call({ method: 'CreatePayment', request, requestId });
      await victim.reached;
      await victim.kill();
      expect(await unanswered).toMatchObject({ code: status.UNAVAILABLE });
    } finally {
      caller.close();
      await victim.kill();
    }
    const completer = service.idempotency.createCompleter({ graceMs: 1 });
    // The lease of the dead is respected.
    expect(await completer.runOnce()).toEqual([]);
    await endLeases(service.database);

    expect(await completer.runOnce()).toEqual(['completed']);
    expect(await completer.runOnce()).toEqual([]);

    expect(await service.database.count('payments')).toBe(1);
    const sentTwice = stopsAt === 'charged' || stopsAt === 'recording';
    expect(await service.database.rows('SELECT times, amount FROM charges')).toEqual([
      { times: sentTwice ? 2 : 1, amount: '1250' },
    ]);
    const replay = await service.pay({ request, requestId });
    expect(replay).toMatchObject({ code: status.OK });
    expect(replay.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await service.database.count('payments')).toBe(1);
  },
);
