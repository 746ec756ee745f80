/**
 * Whether a custom option, spelt as in the source of a proto, is the one of a full name: in full, in full with the dot in
 * front, or relative to one of the scopes around the place where it stands.
 *
 * @param spelling `(idempotency.v1.policy)`, and in a package `idempotency.v1` also `(policy)`
 * @param scope full name of the innermost scope, such as that of the service
 */
export function namesOption(spelling: string, fullName: string, scope: string): boolean {
  const name = /^\(\s*(.+?)\s*\)$/.exec(spelling)?.[1];
  if (name === undefined) return false;
  if (name === fullName || name === `.${fullName}`) return true;
  const relative = `.${name}`;
  const outer = fullName.slice(0, -relative.length);
  return fullName.endsWith(relative) && `${scope}.`.startsWith(`${outer}.`);
}
