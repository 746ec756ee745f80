import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { CreatePaymentRequest } from '../../src/gen/proto/payments/v1/payments';
import { createAuthorizerGate } from '../support/authorizer-gate';
import { callUntilAnswered } from '../support/call-until-answered';
import { rawCall } from '../support/raw-call';
import { useService } from '../support/use-service';

const PATH = '/payments.v1.PaymentsService/CreatePayment';

describe('a deadline that the server enforces, of a client that stays on the line (case D3)', () => {
  const gate = createAuthorizerGate();
  const used = useService({ authorizer: gate.authorizer });

  it('ends the call and not the payment, whose answer the same key is told', async () => {
    const requestId = randomUUID();
    const payment = { orderId: 'order-1', amountMinor: 1250n, currency: 'EUR', paymentMethod: 'tok_visa' };
    const bytes = CreatePaymentRequest.encode(CreatePaymentRequest.create(payment)).finish();
    const late = await rawCall(used.service.grpcPort, PATH, [bytes], {
      ...{ 'grpc-timeout': '1000m', 'request-id': requestId },
    });
    expect(late).toMatchObject({ code: status.DEADLINE_EXCEEDED, endedByHeaders: true, response: undefined });
    await gate.asked(1);

    const request = { order_id: 'order-1', amount_minor: '1250', currency: 'EUR', payment_method: 'tok_visa' };
    const retry = { method: 'CreatePayment', request, requestId };
    const second = await used.client.call(retry);
    expect(second).toMatchObject({ code: status.ABORTED, error: { reason: 'REQUEST_IN_PROGRESS' } });
    gate.answer(1);
    const { answer } = await callUntilAnswered(used.client, retry);
    expect(answer.code).toBe(status.OK);
    expect(answer.trailers.get('idempotent-replayed')).toEqual(['true']);
    expect(await used.database.rows('SELECT payment_id::text AS id FROM payments')).toEqual([
      { id: answer.response?.payment.payment_id },
    ]);
    expect(gate.timesAsked()).toBe(1);
    expect(await used.database.count("idempotency_record WHERE state = 'completed' AND attempt = 1")).toBe(1);
  });
});
