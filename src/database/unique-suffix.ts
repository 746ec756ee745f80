import { randomBytes } from 'node:crypto';

/** Eight characters that no other call returns, for names of files that must not meet. */
export function uniqueSuffix(): string {
  return randomBytes(4).toString('hex');
}
