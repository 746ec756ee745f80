import { type DescExtension, type DescMethod, getOption, isMessage, toBinary } from '@bufbuild/protobuf';
import { Policy } from '../../gen/proto/idempotency/v1/policy';

/** Name of the method option that holds the policy. */
export const POLICY_OPTION = 'idempotency.v1.policy';

/** Number of the method option that holds the policy, as in policy.proto. */
export const POLICY_OPTION_NUMBER = 51871;

/**
 * What a method's option `(idempotency.v1.policy)` says; an empty policy where the method has none.
 *
 * @param extension the option as the descriptor set declares it; undefined where the set doesn't
 */
export function readPolicyOption(method: DescMethod, extension: DescExtension | undefined): Policy {
  if (extension?.message === undefined) return Policy.create();
  const value = getOption(method, extension);
  if (!isMessage(value, extension.message)) throw new TypeError(`${POLICY_OPTION} is not a message`);
  return Policy.decode(toBinary(extension.message, value));
}
