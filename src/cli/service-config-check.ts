import type { MethodPolicy } from '../idempotency/index';
import { resendSafety } from './resend-safety';
import { isObject, listOf, type Plain } from './plain-object';

/** One entry of `methodConfig`, with what it says of retries. */
interface Entry {
  /** `methodConfig[2]` */
  readonly place: string;
  readonly names: readonly Plain[];
  /** `retryPolicy` or `hedgingPolicy`; undefined where it retries nothing. */
  readonly resends: string | undefined;
}

/**
 * What gRPC service config would retry that is unsafe to send twice, and what in it fits no method.
 *
 * @param file its name, for what is printed
 * @returns one line each: the file, the entry, the method, the remedy
 */
export function serviceConfigFaults(file: string, text: string, policies: readonly MethodPolicy[]): readonly string[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    return [`${file}: expected JSON: ${error instanceof Error ? error.message : String(error)}`];
  }
  // In DNS a config is one of several choices.
  const choices = Array.isArray(parsed)
    ? parsed.map((choice: unknown, index) => ({
        at: `[${index}].`,
        config: isObject(choice) ? choice['serviceConfig'] : choice,
      }))
    : [{ at: '', config: parsed }];
  return choices.flatMap(({ at, config }) => {
    if (!isObject(config)) return [`${file}: ${at}expected a service config`];
    const entries = listOf(config['methodConfig']).map((entry, index) =>
      readEntry(entry, `${at}methodConfig[${index}]`),
    );
    return [...unknownNames(entries, policies), ...unsafeRetries(entries, policies)].map(
      (fault) => `${file}: ${fault}`,
    );
  });
}

function readEntry(entry: unknown, place: string): Entry {
  const config = isObject(entry) ? entry : {};
  const resends = ['retryPolicy', 'hedgingPolicy'].find((name) => config[name] !== undefined);
  return { place, names: listOf(config['name']).filter(isObject), resends };
}

/** A misspelt name is a retry policy that does nothing, or one on a method that can't be judged (case J2). */
function unknownNames(entries: readonly Entry[], policies: readonly MethodPolicy[]): readonly string[] {
  return entries.flatMap(({ place, names, resends }) =>
    names
      .filter((name) => serviceOf(name) !== '' && resends !== undefined)
      .filter((name) => !policies.some((policy) => isNamedBy(policy, name)))
      .map((name) => `${place}: ${nameOf(name)}: expected a method of the descriptor set`),
  );
}

function unsafeRetries(entries: readonly Entry[], policies: readonly MethodPolicy[]): readonly string[] {
  return policies.flatMap((policy) => {
    const entry = entryFor(policy, entries);
    const safety = resendSafety(policy);
    if (entry?.resends === undefined || safety.kind !== 'unsafe') return [];
    return [`${entry.place}: ${policy.path}: its ${entry.resends} is unsafe, since ${safety.why}; ${safety.remedy}`];
  });
}

/** By the rules of gRPC: the entry that names the method, else its service, else the one that names nothing. */
function entryFor({ service, method }: MethodPolicy, entries: readonly Entry[]): Entry | undefined {
  const naming = (wanted: (name: Plain) => boolean): Entry | undefined =>
    entries.find(({ names }) => names.some(wanted));
  return (
    naming((name) => serviceOf(name) === service && methodOf(name) === method) ??
    naming((name) => serviceOf(name) === service && methodOf(name) === '') ??
    naming((name) => serviceOf(name) === '')
  );
}

function isNamedBy({ service, method }: MethodPolicy, name: Plain): boolean {
  return serviceOf(name) === service && ['', method].includes(methodOf(name));
}

function nameOf(name: Plain): string {
  return `/${serviceOf(name)}/${methodOf(name) || '*'}`;
}

function serviceOf({ service }: Plain): string {
  return typeof service === 'string' ? service : '';
}

function methodOf({ method }: Plain): string {
  return typeof method === 'string' ? method : '';
}
