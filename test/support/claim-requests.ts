import { randomUUID } from 'node:crypto';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { CreatePaymentRequest } from '../../src/gen/proto/payments/v1/payments';
import { fingerprint } from '../../src/idempotency/fingerprint';
import { loadPolicies, type MethodPolicy } from '../../src/idempotency/index';
import { parseKey, type RequestKey } from '../../src/idempotency/key';
import type { ClaimRequest } from '../../src/idempotency/store/store';

/** What may differ between two requests of a test. */
export interface RequestChange {
  readonly policy?: MethodPolicy;
  readonly scope?: string;
  readonly requestId?: string;
  /** Another order is another content. */
  readonly orderId?: string;
}

/** The policy of a method of PaymentsService, with changes. */
export function policyOf(method: string, change: Partial<MethodPolicy> = {}): MethodPolicy {
  const policy = loadPolicies(descriptorSet).get(`/payments.v1.PaymentsService/${method}`);
  if (policy === undefined) throw new Error(`no method ${method}`);
  return { ...policy, ...change };
}

/** A request to claim CreatePayment with a new undated key, unless the test says otherwise. */
export function claimRequest(change: RequestChange = {}): ClaimRequest {
  const { policy = policyOf('CreatePayment'), scope = 'account-1', requestId = randomUUID() } = change;
  const bytes = CreatePaymentRequest.encode(CreatePaymentRequest.fromPartial({ orderId: change.orderId ?? 'order-1' }));
  return { policy, scope, key: keyOf(requestId), fingerprint: fingerprint(policy.request, bytes.finish()) };
}

/** A UUIDv7 of that moment, new each time. */
export function datedKey(atMs: number): string {
  const time = atMs.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

function keyOf(requestId: string): RequestKey {
  const reading = parseKey([requestId], 'UUID');
  if (reading.kind !== 'key') throw new Error(`not a key: ${requestId}`);
  return reading.key;
}
