import { faultOfKey, readCallKey } from '../../src/idempotency/client/call-key';
import { policies } from '../support/scripted-client';

it('a method whose key is only observed is called with what it was given', () => {
  const enforced = policies.get('/payments.v1.PaymentsService/CreatePayment');
  if (enforced === undefined) throw new Error('no policy');
  const values = ['not-a-uuid'];
  const observed = { ...enforced, enforcement: 'OBSERVE' as const };
  expect(faultOfKey(observed, values, readCallKey(observed, values))).toBeUndefined();
  expect(faultOfKey(enforced, values, readCallKey(enforced, values))).toMatch(/^expected /);
});
