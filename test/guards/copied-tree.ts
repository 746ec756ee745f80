import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Guard } from './guard';

/** A copy of the package in which checks are taken out, one at a time. */
export interface CopiedTree {
  readonly directory: string;
  /** Takes a check out, runs `work`, and puts it back. */
  without<R>(guard: Guard, work: () => Promise<R>): Promise<R>;
  remove(): Promise<void>;
}

/** What tests need of the package; the modules are shared. */
const COPIED = [
  ...['src', 'test', 'prisma', 'proto', 'examples', 'package.json', 'tsconfig.json', 'jest.config.js'],
  ...['prisma.config.ts', 'README.md'],
];

/** Jest's own settings for the copy: the cluster is there already, and nobody reads along. */
export const JEST_CONFIG = 'jest.guards.config.js';
const JEST_SETTINGS = `module.exports = {
  ...require('./jest.config.js'),
  globalSetup: undefined,
  globalTeardown: undefined,
  testEnvironment: './jest.guards.environment.js',
  reporters: [],
};
`;

/** One red test is enough: the others of its file are not run. */
const JEST_ENVIRONMENT = `const { TestEnvironment } = require('jest-environment-node');
module.exports = class extends TestEnvironment {
  async handleTestEvent(event) {
    if (event.name === 'test_done' && event.test.errors.length > 0) this.isRed = true;
    if (event.name === 'test_start' && this.isRed) event.test.mode = 'skip';
  }
};
`;

/** Copies the package. */
export async function copyTree(root: string): Promise<CopiedTree> {
  const directory = await mkdtemp(join(tmpdir(), 'grpc-idempotency-guards-'));
  for (const name of COPIED) await cp(join(root, name), join(directory, name), { recursive: true });
  await writeFile(join(directory, JEST_CONFIG), JEST_SETTINGS);
  await writeFile(join(directory, 'jest.guards.environment.js'), JEST_ENVIRONMENT);
  await symlink(join(root, 'node_modules'), join(directory, 'node_modules'));
  return {
    directory,
    without: async (guard, work) => {
      const path = join(directory, guard.file);
      const source = await readFile(path, 'utf8');
      const changed = guard.without(source);
      if (changed === source) throw new Error(`nothing was taken out for ${guard.name}`);
      await writeFile(path, changed);
      try {
        return await work();
      } finally {
        await writeFile(path, source);
      }
    },
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}
