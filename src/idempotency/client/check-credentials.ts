import { ChannelCredentials } from '@grpc/grpc-js';
import { kindOf } from '../option-names';

/**
 * Checks that credentials were made by the grpc-js that this package uses. A channel takes no others, and a package that
 * is linked from its folder comes with a grpc-js of its own.
 *
 * @throws TypeError that says how the two can be brought together, or that there are none
 */
export function checkCredentials(credentials: unknown): void {
  if (credentials instanceof ChannelCredentials) return;
  if (typeof credentials !== 'object' || credentials === null) {
    throw new TypeError(
      `credentials: expected ChannelCredentials, such as credentials.createInsecure(), got ${kindOf(credentials)}`,
    );
  }
  throw new TypeError(
    'credentials: expected ChannelCredentials of the @grpc/grpc-js that this package uses. With two copies of ' +
      "@grpc/grpc-js, import { credentials } from 'grpc-idempotency', or keep one: npm dedupe, or npm install " +
      '--install-links where this package is installed from a folder',
  );
}
