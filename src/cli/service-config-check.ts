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
  /** How often that may send a call; undefined where it says no number. */
  readonly maxAttempts: number | undefined;
}

/** What was found in a service config: one line each, with the file, the entry, the method and the remedy. */
export interface ServiceConfigFindings {
  /** What would be sent twice unsafely, and what fits no method. */
  readonly faults: readonly string[];
  /** What is safe, and does not do what it says. */
  readonly warnings: readonly string[];
}

/** The most attempts that a client makes, whatever its service config says (gRFC A6). */
const MOST_ATTEMPTS = 5;

/**
 * What gRPC service config would retry that is unsafe to send twice, what in it fits no method, and what clients don't do
 * of it.
 *
 * @param file its name, for what is printed
 */
export function checkServiceConfig(
  file: string,
  text: string,
  policies: readonly MethodPolicy[],
): ServiceConfigFindings {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    return { faults: [`${file}: expected JSON: ${said}`], warnings: [] };
  }
  const found = choicesOf(parsed).map(({ at, config }) => checkChoice(at, config, policies));
  const inFile = (lines: readonly string[]): readonly string[] => lines.map((line) => `${file}: ${line}`);
  return {
    faults: inFile(found.flatMap(({ faults }) => faults)),
    warnings: inFile(found.flatMap(({ warnings }) => warnings)),
  };
}

function choicesOf(parsed: unknown): readonly { readonly at: string; readonly config: unknown }[] {
  // In DNS a config is one of several choices.
  return Array.isArray(parsed)
    ? parsed.map((choice: unknown, index) => ({
        at: `[${index}].`,
        config: isObject(choice) ? choice['serviceConfig'] : choice,
      }))
    : [{ at: '', config: parsed }];
}

function checkChoice(at: string, config: unknown, policies: readonly MethodPolicy[]): ServiceConfigFindings {
  if (!isObject(config)) return { faults: [`${at}expected a service config`], warnings: [] };
  const strange =
    config['methodConfig'] === undefined ? Object.keys(config).filter((key) => !FIELDS.includes(key)) : [];
  if (strange.length > 0)
    return { faults: [`${at}expected a service config, got ${strange.join(', ')}`], warnings: [] };
  const entries = listOf(config['methodConfig']).map((entry, index) => readEntry(entry, `${at}methodConfig[${index}]`));
  return {
    faults: [...repeatedNames(entries), ...unknownNames(entries, policies), ...unsafeRetries(entries, policies)],
    warnings: cappedAttempts(entries, policies),
  };
}

/** The fields of a service config beside `methodConfig`. */
const FIELDS: readonly string[] = [
  'loadBalancingConfig',
  'loadBalancingPolicy',
  'retryThrottling',
  'healthCheckConfig',
];

/** gRPC refuses a config as a whole in which a name comes twice: no timeout and no retry of it counts. */
function repeatedNames(entries: readonly Entry[]): readonly string[] {
  const named = entries.flatMap(({ place, names }) => names.map((name) => ({ place, name: nameOf(name) })));
  return named
    .filter(({ name }, index) => named.findIndex((earlier) => earlier.name === name) < index)
    .map(({ place, name }) => `${place}: ${name}: is named before; channels refuse the whole config`);
}

function readEntry(entry: unknown, place: string): Entry {
  const config = isObject(entry) ? entry : {};
  const resends = ['retryPolicy', 'hedgingPolicy'].find((name) => config[name] !== undefined);
  const policy = resends === undefined ? undefined : config[resends];
  const asked = isObject(policy) ? policy['maxAttempts'] : undefined;
  return {
    ...{ place, names: listOf(config['name']).filter(isObject), resends },
    maxAttempts: typeof asked === 'number' ? asked : undefined,
  };
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

/** A larger number is taken for the largest without a word (case J2). */
function cappedAttempts(entries: readonly Entry[], policies: readonly MethodPolicy[]): readonly string[] {
  return policies.flatMap((policy) => {
    const { place, resends, maxAttempts } = entryFor(policy, entries) ?? {};
    if (maxAttempts === undefined || maxAttempts <= MOST_ATTEMPTS) return [];
    return [
      `${place}: ${policy.path}: its ${resends} asks for ${maxAttempts} attempts, of which clients make ${MOST_ATTEMPTS} and ` +
        `say nothing; ask for ${MOST_ATTEMPTS}, or raise the limit of each channel (grpc-node.retry_max_attempts_limit)`,
    ];
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
