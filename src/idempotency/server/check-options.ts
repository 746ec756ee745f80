import { checkOptions } from '../option-names';
import type { IdempotencyOptions } from './idempotency';
import type { RequestsServiceOptions } from './requests-service';

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
export function checkServerOptions<Tx>(options: IdempotencyOptions<Tx>): void {
  checkOptions('createIdempotency', '{ policies, store, principal }', options, NAMES, (expect) => {
    const { policies, store, principal, onEvent, requestIdName, mostAttempts, mostWaiting } = options;
    expect(typeof policies?.get === 'function', 'policies', 'what loadPolicies or policiesFromPackageDefinition made');
    expect(typeof store?.claim === 'function', 'store', OPENED_STORE);
    expect(typeof principal === 'function', 'principal', 'a function that names the account of the caller');
    expect(onEvent === undefined || typeof onEvent === 'function', 'onEvent', 'a function');
    expect(requestIdName === undefined || typeof requestIdName === 'string', 'requestIdName', 'a metadata name');
    expect(isCount(mostAttempts), 'mostAttempts', 'a whole number from 1 on');
    expect(isCount(mostWaiting), 'mostWaiting', 'a whole number from 1 on');
  });
}

const REQUESTS_SERVICE_NAMES: ReadonlySet<string> = new Set<keyof RequestsServiceOptions<object>>([
  'policies',
  'store',
]);

/**
 * Checks what the service that tells of keys works with.
 *
 * @throws TypeError that names each option at fault and what was expected, all at once
 */
export function checkRequestsServiceOptions<Tx>(options: RequestsServiceOptions<Tx>): void {
  checkOptions('createRequestsService', '{ policies, store }', options, REQUESTS_SERVICE_NAMES, (expect) => {
    expect(Array.isArray(options.policies), 'policies', 'an array, such as policies.all()');
    expect(typeof options.store?.lookUpStatus === 'function', 'store', OPENED_STORE);
  });
}

const OPENED_STORE = 'what openPostgresStore resolved with';

function isCount(value: number | undefined): boolean {
  return value === undefined || (Number.isInteger(value) && value >= 1);
}
