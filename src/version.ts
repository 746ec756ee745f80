import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from './database/package-root';

/** Version of this package, as in package.json. */
export const version: string = readVersion();

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8'));
  if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) return String(manifest.version);
  throw new Error('package.json names no version');
}
