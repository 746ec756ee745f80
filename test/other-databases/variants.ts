import { startInTemporaryDirectory } from '../support/postgres';
import { startDebianPostgres } from './debian-postgres';

/** A database server for one run of tests. */
export interface RunningDatabase {
  readonly connectionString: string;
  /** Stops it and removes its files. */
  stop(): Promise<void>;
}

/** A server, or a setting of one, that must make no difference. */
export interface Variant {
  readonly name: string;
  /** Says why where it can't be started here. */
  start(options: { readonly install: boolean }): Promise<RunningDatabase | { readonly missing: string }>;
}

/** Several processes with two pools each. */
const SETTINGS = { max_connections: '300' };

/** The embedded Postgres; the values go through a shell. */
function embedded(settings: Readonly<Record<string, string>>): Variant['start'] {
  return async () => {
    const { postgres, remove } = await startInTemporaryDirectory(false, { ...SETTINGS, ...settings });
    return { connectionString: postgres.connectionString, stop: remove };
  };
}

/** All of them. */
export const VARIANTS: readonly Variant[] = [
  { name: 'embedded', start: embedded({}) },
  { name: "Debian's 15", start: ({ install }) => startDebianPostgres(SETTINGS, install) },
  // Fourteen hours ahead: most of the time it is another day there.
  { name: 'embedded, Pacific/Kiritimati', start: embedded({ timezone: 'Pacific/Kiritimati' }) },
  { name: 'embedded, REPEATABLE READ', start: embedded({ default_transaction_isolation: "'repeatable read'" }) },
  { name: 'embedded, SERIALIZABLE', start: embedded({ default_transaction_isolation: 'serializable' }) },
];
