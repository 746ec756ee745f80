import { checkOptions } from '../option-names';
import type { SqlClient } from './database';
import type { PostgresStoreOptions } from './postgres-store';
import type { RetentionOptions } from './retention';

const STORE_NAMES: ReadonlySet<string> = new Set(
  Object.keys({
    business: true,
    records: true,
    policies: true,
    instance: true,
  } satisfies Record<keyof PostgresStoreOptions<SqlClient>, true>),
);

const RETENTION_NAMES: ReadonlySet<string> = new Set(
  Object.keys({
    client: true,
    onEvent: true,
    exportDay: true,
    purgeBatch: true,
    leaseMs: true,
    instance: true,
    signal: true,
  } satisfies Record<keyof RetentionOptions<SqlClient>, true>),
);

const CLIENT = 'a Prisma client, or what has its $transaction and $queryRawUnsafe';

/**
 * Checks what a store is opened with.
 *
 * @throws TypeError that names each option at fault and what was expected, all at once
 */
export function checkStoreOptions<Tx extends SqlClient>(options: PostgresStoreOptions<Tx>): void {
  checkOptions('openPostgresStore', '{ business, records, policies }', options, STORE_NAMES, (expect) => {
    const { business, records, policies, instance } = options;
    // What runs its transactions may do nothing else.
    expect(hasMethod(business, '$transaction'), 'business', CLIENT);
    expect(hasMethod(records, '$queryRawUnsafe'), 'records', CLIENT);
    expect(Array.isArray(policies), 'policies', 'an array, such as policies.all()');
    expect(instance === undefined || typeof instance === 'string', 'instance', 'a text');
  });
}

/**
 * Checks what a round of retention runs with.
 *
 * @throws TypeError that names each option at fault and what was expected, all at once
 */
export function checkRetentionOptions<Tx extends SqlClient>(options: RetentionOptions<Tx>): void {
  checkOptions('runRetention', '{ client }', options, RETENTION_NAMES, (expect) => {
    const { client, onEvent, exportDay, signal } = options;
    expect(hasMethod(client, '$transaction') && hasMethod(client, '$queryRawUnsafe'), 'client', CLIENT);
    expect(onEvent === undefined || typeof onEvent === 'function', 'onEvent', 'a function');
    expect(exportDay === undefined || typeof exportDay === 'function', 'exportDay', 'a function');
    expect(signal === undefined || typeof signal?.aborted === 'boolean', 'signal', 'an AbortSignal');
  });
}

/** Prisma's clients are proxies: only asking tells. */
function hasMethod(value: object | undefined | null, name: string): boolean {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, name) === 'function';
}
