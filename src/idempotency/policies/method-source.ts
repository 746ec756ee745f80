import type { DescMessage } from '@bufbuild/protobuf';
import type { Policy } from '../../gen/proto/idempotency/v1/policy';
import type { Level } from '../policy';
import type { RefuseSetting } from './policy-settings';

/** What a descriptor set or a definition says of one method: all that its policy is made from. */
export interface MethodSource {
  /** `payments.v1.PaymentsService` */
  readonly service: string;
  /** `CreatePayment` */
  readonly method: string;
  readonly clientStreaming: boolean;
  readonly serverStreaming: boolean;
  /** The type of the request; undefined where the source doesn't hold it whole. */
  readonly request: DescMessage | undefined;
  /** Reads what the method says of itself. Tells `refuse` what it can't make sense of. */
  readonly read: (refuse: RefuseSetting) => MethodOptions;
}

/** What a method says of itself. */
export interface MethodOptions {
  readonly level: Level;
  /** Its option `(idempotency.v1.policy)`; an empty policy where it has none. */
  readonly policy: Policy;
}
