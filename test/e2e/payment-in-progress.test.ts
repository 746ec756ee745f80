import { randomUUID } from 'node:crypto';
import { credentials, status } from '@grpc/grpc-js';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { createPromiseClient, loadPolicies, RequestsServiceService, RequestState } from '../../src/idempotency/index';
import { createAuthorizerGate } from '../support/authorizer-gate';
import { paymentRequest } from '../support/payment-requests';
import { useService } from '../support/use-service';

const METHOD = '/payments.v1.PaymentsService/CreatePayment';

describe('a payment whose card network is being asked', () => {
  const gate = createAuthorizerGate();
  const used = useService({ authorizer: gate.authorizer });
  let asked = 0;

  const pay = (requestId: string, request = paymentRequest({ order_id: `order-${requestId}` })) =>
    used.client.call({ method: 'CreatePayment', request, requestId });
  const resourceOf = async (requestId: string) => {
    const text = 'SELECT resource FROM idempotency_record WHERE request_id = $1';
    return (await used.database.rows<{ resource: string | null }>(text, [requestId]))[0]?.resource;
  };
  const draftOf = async (requestId: string): Promise<string | undefined> => {
    const text = 'SELECT payment_id::text AS id FROM payment_drafts WHERE request_id = $1';
    return (await used.database.rows<{ id: string }>(text, [requestId]))[0]?.id;
  };

  it('is named to a duplicate, to whoever asks with the key, and on the line of its call', async () => {
    const [requestId, time] = [randomUUID(), ++asked];
    const first = pay(requestId);
    await gate.asked(time);
    const resource = `payments/${await draftOf(requestId)}`;
    expect(await resourceOf(requestId)).toBe(resource);

    const second = await pay(requestId);
    expect(second).toMatchObject({ code: status.ABORTED, error: { reason: 'REQUEST_IN_PROGRESS' } });
    expect(second.error.metadata.get('resource')).toBe(resource);
    const requests = createPromiseClient(RequestsServiceService, `127.0.0.1:${used.service.grpcPort}`, {
      ...{ credentials: credentials.createInsecure(), policies: loadPolicies(descriptorSet) },
    });
    const found = await requests.getRequest({ method: METHOD, requestId });
    requests.close();
    expect(found).toMatchObject({ state: RequestState.REQUEST_STATE_IN_PROGRESS, resource });

    gate.answer(time);
    const paid = await first;
    expect(`payments/${paid.response?.payment.payment_id}`).toBe(resource);
    expect(await resourceOf(requestId)).toBe(resource);
  });

  it('is named by the transaction that drafts it, and by no statement after that', async () => {
    const [requestId, time] = [randomUUID(), ++asked];
    const first = pay(requestId);
    await gate.asked(time);
    // The transaction that wrote each row last.
    const text = `SELECT draft.xmin::text = record.xmin::text AS together
                  FROM payment_drafts AS draft JOIN idempotency_record AS record USING (request_id) WHERE request_id = $1`;
    expect(await used.database.rows(text, [requestId])).toEqual([{ together: true }]);
    gate.answer(time);
    await first;
  });

  it('is named on the lines of the attempt that failed, and of the one that resumed it', async () => {
    const [requestId, time] = [randomUUID(), ++asked];
    const first = pay(requestId);
    await gate.asked(time);
    const paymentId = await draftOf(requestId);
    gate.fail(time);
    expect((await first).code).not.toBe(status.OK);
    gate.answer(++asked);
    expect((await pay(requestId)).response?.payment.payment_id).toBe(paymentId);

    const lines = used.service.lines.filter((line) => line['outcome'] !== undefined && line['requestId'] === requestId);
    const named = { 'published.payment_id': paymentId, 'published.resource': `payments/${paymentId}` };
    expect(lines).toMatchObject([
      { attempt: 1, 'published.order_id': `order-${requestId}`, ...named },
      { attempt: 2, 'published.order_id': `order-${requestId}`, ...named },
    ]);
  });
});
