import { readFileSync, statSync } from 'node:fs';
import { descriptorSet as ownDescriptorSet } from '../gen/descriptor-set';
import { loadPolicies, type MethodPolicy, PolicyError } from '../idempotency/index';
import { UsageError } from './command';

/** What this package's own protos are called in what is printed. */
const OWN = "this package's protos";

/** The policies that a command works on, and why some can't be used. */
export interface ReadPolicies {
  readonly policies: readonly MethodPolicy[];
  /** One line each: the file, the method, the setting, what was expected. */
  readonly faults: readonly string[];
}

/**
 * Reads the policies of descriptor sets, or of this package where no file is named.
 *
 * @param files paths; `-` is standard input
 * @param services full names; where there are any, only their methods count
 * @throws UsageError where a file is not there or no descriptor set by its kind, or a service is in none of them
 */
export function readPolicies(files: readonly string[], services: readonly string[]): ReadPolicies {
  const sets = files.length === 0 ? [{ name: OWN, bytes: ownDescriptorSet }] : files.map(readSet);
  const read = sets.map(({ name, bytes }) => policiesOf(name, bytes));
  const policies = read.flatMap((one) => one.policies);
  const faults = read.flatMap((one) => one.faults);
  for (const service of services) {
    if (faults.length > 0 || policies.some((policy) => policy.service === service)) continue;
    const known = [...new Set(policies.map((policy) => policy.service))];
    throw new UsageError(`no service ${service}; there are: ${known.join(', ') || 'none'}`);
  }
  const chosen = services.length === 0 ? policies : policies.filter(({ service }) => services.includes(service));
  return { policies: chosen, faults };
}

function policiesOf(name: string, bytes: Uint8Array): ReadPolicies {
  try {
    return { policies: loadPolicies(bytes).all(), faults: [] };
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    const [summary = ''] = error.message.split('\n');
    return { policies: [], faults: [`${name}: ${summary}`, ...error.faults.map((fault) => `${name}: ${fault}`)] };
  }
}

function readSet(file: string): { readonly name: string; readonly bytes: Uint8Array } {
  if (file === '-') return { name: 'standard input', bytes: readFileSync(0) };
  if (file.endsWith('.proto') || isDirectory(file)) {
    throw new UsageError(
      `${file} is not a descriptor set; pass one on: ` +
        'buf build --as-file-descriptor-set -o - | npx grpc-idempotency … - ' +
        '(or protoc --include_imports --descriptor_set_out=/dev/stdout)',
    );
  }
  return { name: file, bytes: readInput(file) };
}

/** @throws UsageError where the file can't be read */
export function readInput(file: string): Uint8Array {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
