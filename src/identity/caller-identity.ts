import type { Principal } from '../idempotency/index';
import { readAccountFile } from './account-file';
import { bearerPrincipal } from './bearer-principal';

/** How callers are told apart. */
export interface CallerIdentityOptions {
  /** Path of a file of bearer tokens (`readAccountFile`); undefined where everybody is the account `local`. */
  readonly tokensFile: string | undefined;
  /** Other machines reach the service. */
  readonly reachable: boolean;
}

/** How callers are identified, and what whoever runs the service should know about it, a line each. */
export interface CallerIdentity {
  readonly principal: Principal;
  readonly warnings: readonly string[];
}

/**
 * Decides how callers are identified (design 4.3), and what that leaves open.
 *
 * @throws AccountFileError
 */
export function callerIdentity({ tokensFile, reachable }: CallerIdentityOptions): CallerIdentity {
  if (tokensFile === undefined) {
    const warning = 'no identity is configured (AUTH_MODE=none): every caller is the account "local"';
    return { principal: () => 'local', warnings: [warning] };
  }
  const accounts = readAccountFile(tokensFile);
  const warnings: string[] = [];
  if (accounts.readableByOthers) {
    warnings.push(`every user of this machine can read the tokens in ${tokensFile}; chmod o-r ends that`);
  }
  if (reachable) {
    warnings.push('connections are not encrypted: tokens can be read on the way; use a network that you trust');
  }
  return { principal: bearerPrincipal(accounts), warnings };
}
