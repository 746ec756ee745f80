import { faultsOfNames, kindOf } from '../option-names';
import type { IdempotencyOptions } from './idempotency';

const NAMES: ReadonlySet<string> = new Set(
  Object.keys({
    policies: true,
    store: true,
    principal: true,
    onEvent: true,
    requestIdName: true,
    mostAttempts: true,
    mostWaiting: true,
    clientVersions: true,
  } satisfies Record<keyof IdempotencyOptions<object>, true>),
);

/**
 * Checks what a server's protection is made of. What is missing would show itself at the first call otherwise, as an
 * INTERNAL to somebody else.
 *
 * @throws TypeError that names each option at fault and what was expected, all at once
 */
export function checkOptions<Tx>(options: IdempotencyOptions<Tx>): void {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`createIdempotency: expected { policies, store, principal }, got ${kindOf(options)}`);
  }
  const { policies, store, principal, onEvent, requestIdName, mostAttempts, mostWaiting } = options;
  const faults: string[] = [...faultsOfNames(options, NAMES)];
  const expect = (isRight: boolean, option: keyof IdempotencyOptions<Tx>, expected: string): void => {
    if (!isRight) faults.push(`${option}: expected ${expected}, got ${kindOf(options[option])}`);
  };
  expect(typeof policies?.get === 'function', 'policies', 'what loadPolicies or policiesFromPackageDefinition made');
  expect(typeof store?.claim === 'function', 'store', 'what openPostgresStore resolved with');
  expect(typeof principal === 'function', 'principal', 'a function that names the account of the caller');
  expect(onEvent === undefined || typeof onEvent === 'function', 'onEvent', 'a function');
  expect(requestIdName === undefined || typeof requestIdName === 'string', 'requestIdName', 'a metadata name');
  expect(isCount(mostAttempts), 'mostAttempts', 'a whole number from 1 on');
  expect(isCount(mostWaiting), 'mostWaiting', 'a whole number from 1 on');
  if (faults.length > 0) throw new TypeError(`createIdempotency: ${faults.join('; ')}`);
}

function isCount(value: number | undefined): boolean {
  return value === undefined || (Number.isInteger(value) && value >= 1);
}
