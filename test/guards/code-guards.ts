import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CodeCheck } from './checks-in-code';
import type { FoundGuards, Guard } from './guard';

/**
 * A guard for each check that is listed. A text that is not in its file exactly once is a fault.
 *
 * @param root of the package
 */
export async function codeGuards(root: string, checks: readonly CodeCheck[]): Promise<FoundGuards> {
  const faults: string[] = [];
  const guards: Guard[] = [];
  for (const { file, text, replacement, tests } of checks) {
    const source = await readFile(join(root, file), 'utf8');
    const times = source.split(text).length - 1;
    if (times !== 1) faults.push(`${file}: found ${String(times)} times, expected once: ${text}`);
    for (const test of tests) {
      await access(join(root, test)).catch(() => faults.push(`${file}: there is no ${test}`));
    }
    guards.push({
      name: `${file.replace('src/idempotency/', '')}: ${text.replaceAll(/\s+/g, ' ').trim()}`,
      file,
      without: (current) => current.split(text).join(replacement),
      tests,
    });
  }
  return { guards, faults };
}
