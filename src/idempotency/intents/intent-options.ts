import { assertObject, faultsOfNames } from '../option-names';
import { type MethodPolicy, POLICY_DEFAULTS } from '../policy';
import { isStableName, STABLE_NAME_EXPECTED } from '../stable-name';
import type { SqlClient } from '../store/database';

const DAY_MS = 24 * 3_600_000;

/** A Prisma client of the caller's own database. The client of an open transaction has no `$connect` and does not fit. */
export interface IntentClient extends SqlClient {
  $connect(): Promise<void>;
}

/** How intents are kept. */
export interface IntentOptions {
  /** Of the database that the business objects are in, on Postgres 13 or later, with the table of `INTENT_TABLE_SQL`. */
  readonly client: IntentClient;
  /**
   * The application that makes the intents, for example `shop/checkout`. It is part of what a key is found by: never the
   * name of a process, a host or a version, whose restart would make every key anew.
   */
  readonly producer: string;
  /** Of the methods that get the keys, as `loadPolicies` gives them. Default: one method with the default ages. */
  readonly policies?: readonly Pick<MethodPolicy, 'maxKeyAgeMs' | 'retentionMs'>[] | undefined;
  /**
   * How long after its making a key is handed out. Less than the shortest max key age and retention of `policies`, and so
   * much less that clocks which differ and a call that has just begun don't matter. Default: half of it, 12 hours where
   * nothing else is said.
   */
  readonly expiresAfterMs?: number | undefined;
  /**
   * How long a finished intent is kept, at least `expiresAfterMs`: for so long a job that is delivered twice can't pay
   * twice. Default 30 days.
   */
  readonly keepFinishedMs?: number | undefined;
  /** Most rows that one statement of `purgeFinished` removes. Default 1,000. */
  readonly purgeBatchSize?: number | undefined;
}

const NAMES: ReadonlySet<string> = new Set(
  Object.keys({
    client: true,
    producer: true,
    policies: true,
    expiresAfterMs: true,
    keepFinishedMs: true,
    purgeBatchSize: true,
  } satisfies Record<keyof IntentOptions, true>),
);

/** The options with the defaults filled in. */
export type IntentSettings = { readonly [Name in keyof IntentOptions]-?: Exclude<IntentOptions[Name], undefined> };

/**
 * Fills in the defaults and checks every option.
 *
 * @throws TypeError that names each option at fault and what was expected, all at once
 */
export function intentSettings(options: IntentOptions): IntentSettings {
  assertObject('intents', '{ client, producer }', options);
  const policies = options.policies ?? [POLICY_DEFAULTS];
  const listed: typeof policies = Array.isArray(policies) ? policies : [];
  const ages = listed.flatMap((policy) => [policy?.maxKeyAgeMs, policy?.retentionMs]);
  const shortestMs = Math.min(...ages);
  const expiresAfterMs = options.expiresAfterMs ?? shortestMs / 2;
  const settings: IntentSettings = {
    client: options.client,
    producer: options.producer,
    policies,
    expiresAfterMs,
    keepFinishedMs: options.keepFinishedMs ?? Math.max(30 * DAY_MS, expiresAfterMs),
    purgeBatchSize: options.purgeBatchSize ?? 1_000,
  };
  const faults: string[] = [...faultsOfNames(options, NAMES)];
  const expect = (isRight: boolean, option: keyof IntentOptions, expected: string, got?: number): void => {
    if (!isRight) faults.push(`${option}: expected ${expected}${got === undefined ? '' : `, got ${got}`}`);
  };
  const { client, producer, keepFinishedMs, purgeBatchSize } = settings;
  const isClient = typeof client?.$queryRawUnsafe === 'function' && typeof client.$connect === 'function';
  expect(isClient, 'client', 'a Prisma client, and not that of an open transaction');
  expect(isStableName(producer), 'producer', STABLE_NAME_EXPECTED);
  const arePolicies = ages.length > 0 && ages.every((ms) => Number.isFinite(ms) && ms > 0);
  expect(arePolicies, 'policies', 'the policies of one or more methods');
  if (arePolicies) {
    const isInTime = expiresAfterMs > 0 && expiresAfterMs < shortestMs;
    const expected = `milliseconds, more than 0 and less than ${shortestMs}, the shortest max key age and retention`;
    expect(isInTime, 'expiresAfterMs', expected, expiresAfterMs);
    const isKept = Number.isFinite(keepFinishedMs) && keepFinishedMs >= expiresAfterMs;
    expect(isKept, 'keepFinishedMs', `milliseconds, at least expiresAfterMs (${expiresAfterMs})`, keepFinishedMs);
  }
  const isBatch = Number.isInteger(purgeBatchSize) && purgeBatchSize >= 1 && purgeBatchSize <= 100_000;
  expect(isBatch, 'purgeBatchSize', 'a whole number from 1 to 100000', purgeBatchSize);
  if (faults.length > 0) throw new TypeError(`intents: ${faults.join('; ')}`);
  return settings;
}
