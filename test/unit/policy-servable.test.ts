import { descriptorSet } from '../../src/gen/descriptor-set';
import { loadPolicies } from '../../src/idempotency/index';
import { assertServable } from '../../src/idempotency/policies/assert-servable';
import { policyFaults } from '../support/policy-faults';
import { levelOf, policyOf, serviceWith } from '../support/service-proto';

describe('assertServable', () => {
  const unary = { requestStream: false, responseStream: false };

  it('refuses served methods without a policy, and names each', () => {
    const served = {
      known: { ...unary, path: '/payments.v1.PaymentsService/GetPayment' },
      first: { ...unary, path: '/payments.v1.PaymentsService/Charge' },
    };
    const other = { second: { ...unary, path: '/other.v1.S/Charge' } };
    const check = (): void => assertServable(loadPolicies(descriptorSet), [served, other]);
    expect(policyFaults(check)).toEqual([
      '/payments.v1.PaymentsService/Charge: expected in the descriptor set that the policies come from',
      '/other.v1.S/Charge: expected in the descriptor set that the policies come from',
    ]);
    expect(check).toThrow('/other.v1.S/Charge');
  });

  it('refuses streams that are neither safe nor marked, and names each', () => {
    const marked = policyOf('unprotected_stream: true');
    const registry = loadPolicies(
      serviceWith({
        Unary: '',
        'rpc Client(stream M) returns (M)': '',
        'rpc SafeClient(stream M) returns (M)': levelOf('NO_SIDE_EFFECTS'),
        'rpc Both(stream M) returns (stream M)': levelOf('IDEMPOTENT'),
        'rpc Server(M) returns (stream M)': '',
        'rpc IdempotentServer(M) returns (stream M)': levelOf('IDEMPOTENT'),
        'rpc SafeServer(M) returns (stream M)': levelOf('NO_SIDE_EFFECTS'),
        'rpc MarkedClient(stream M) returns (M)': marked,
        'rpc MarkedBoth(stream M) returns (stream M)': marked,
        'rpc MarkedServer(M) returns (stream M)': marked,
      }),
    );
    const service = Object.fromEntries(
      registry
        .all()
        .map(({ method, path, clientStreaming, serverStreaming }) => [
          method,
          { path, requestStream: clientStreaming, responseStream: serverStreaming },
        ]),
    );
    const expected =
      'expected unprotected_stream: true in its (idempotency.v1.policy), since a stream is not protected';
    expect(policyFaults(() => assertServable(registry, [service]))).toEqual([
      `/t.v1.S/Client: ${expected}`,
      `/t.v1.S/SafeClient: ${expected}`,
      `/t.v1.S/Both: ${expected}`,
      `/t.v1.S/Server: ${expected}`,
      `/t.v1.S/IdempotentServer: ${expected}`,
    ]);
  });

  it('refuses methods that take keys and whose requests are of an unknown type, and names each', () => {
    const known = loadPolicies(descriptorSet);
    const get = (path: string) => {
      const policy = known.get(path);
      return policy && { ...policy, requestKnown: false };
    };
    const service = {
      // It takes no key, so nothing of it is compared.
      getPayment: { ...unary, path: '/payments.v1.PaymentsService/GetPayment' },
      createPayment: { ...unary, path: '/payments.v1.PaymentsService/CreatePayment' },
      updatePayment: { ...unary, path: '/payments.v1.PaymentsService/UpdatePayment' },
    };

    expect(() => assertServable(known, [service])).not.toThrow();
    const expected =
      'expected the type of its request, which decides what is the same request: pass ' +
      '{ requestTypes: bytes }, a descriptor set of the same protos, where its policies are read';
    expect(policyFaults(() => assertServable({ ...known, get }, [service]))).toEqual([
      `/payments.v1.PaymentsService/CreatePayment: ${expected}`,
      `/payments.v1.PaymentsService/UpdatePayment: ${expected}`,
    ]);
  });
});
