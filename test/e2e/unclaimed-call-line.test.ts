import { status } from '@grpc/grpc-js';
import { type AttemptService, startAttemptService } from '../support/attempt-service';

let service: AttemptService;

beforeAll(async () => (service = await startAttemptService()));
afterAll(() => service.stop());

it('the line of a call that runs unclaimed tells of no record, also where it completes', async () => {
  service.handle({ updatePayment: (_, attempt) => attempt.complete(async () => ({ payment: undefined })) });
  const answer = await service.client.call({ method: 'UpdatePayment', request: { payment_id: 'p', etag: 'e' } });
  expect(answer.code).toBe(status.OK);
  const lines = service.events.filter((event) => event.type === 'call');
  expect(lines).toMatchObject([{ outcome: 'unprotected' }]);
  expect(lines[0]).not.toHaveProperty('recordState');
});
