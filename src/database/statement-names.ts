/** Names for prepared statements: the same text gets the same name; the empty one means unnamed, as on the wire. */
export type StatementNames = (query: { readonly sql: string }) => string;

/**
 * Names the first `limit` texts that are seen and leaves the others unnamed. Every name is a prepared statement in the
 * memory of every connection, so a text that is built anew for each call must not be able to add names for ever.
 *
 * @param limit most names; default 256, far above the number of statements of this package
 */
export function createStatementNames(limit = 256): StatementNames {
  const names = new Map<string, string>();
  return ({ sql }) => {
    const known = names.get(sql);
    if (known !== undefined) return known;
    if (names.size >= limit) return '';
    const name = `s${String(names.size)}`;
    names.set(sql, name);
    return name;
  };
}
