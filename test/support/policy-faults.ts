import { PolicyError } from '../../src/idempotency/index';

/** What a PolicyError tells, a line for each fault; nothing where none is thrown. */
export function policyFaults(action: () => unknown): readonly string[] {
  try {
    action();
  } catch (error) {
    if (error instanceof PolicyError) return error.faults;
    throw error;
  }
  return [];
}
