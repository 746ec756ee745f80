// Generates all code that is not committed: messages and service definitions (ts-proto), the descriptor set that the
// policies are read from, and the Prisma client. Works offline. `--check` fails when what is on disk is not what the
// sources give.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const generated = join(root, 'src', 'gen');

/** Runs a tool of node_modules/.bin and returns what it wrote to its standard output. */
function run(tool, args, environment = {}) {
  return execFileSync(join(root, 'node_modules', '.bin', tool), args, {
    cwd: root,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 64 * 1024 * 1024,
  });
}

/** One hash over the names and contents of files. */
function digest(paths) {
  const hash = createHash('sha256');
  for (const path of [...paths].sort()) {
    hash.update(path.slice(root.length)).update('\0').update(readFileSync(path)).update('\0');
  }
  return hash.digest('hex');
}

/** All files below a folder; none where it is missing. */
function filesBelow(folder) {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** What the generated code is made from; the lock file stands for the generators. */
function sources() {
  const single = ['buf.gen.yaml', 'buf.yaml', 'package-lock.json', 'prisma/schema.prisma', 'scripts/generate.mjs'];
  return [...filesBelow(join(root, 'proto')), ...single.map((path) => join(root, path))];
}

function generate() {
  rmSync(generated, { recursive: true, force: true });
  mkdirSync(generated, { recursive: true });
  run('buf', ['generate']);
  const descriptorSet = run('buf', [
    'build',
    '--as-file-descriptor-set',
    '--exclude-source-info',
    '-o',
    '-#format=binpb',
  ]);
  writeFileSync(
    join(generated, 'descriptor-set.ts'),
    '/** All protos of this package with their options, as a serialized google.protobuf.FileDescriptorSet. */\n' +
      `export const descriptorSet: Uint8Array = Buffer.from(\n  '${descriptorSet.toString('base64')}',\n  'base64',\n);\n`,
  );
  // `prisma generate` needs no engine, yet insists on downloading one unless it is given a program that ends well; the
  // migrations are applied by a runner of our own, so nothing else of it is ever used.
  run('prisma', ['generate', '--no-hints'], { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath });
}

// Made once from the same sources, so that an installation beside a running test or build takes nothing away from it.
const stamp = join(generated, 'sources.sha256');
const isCheck = process.argv.includes('--check');
const isCurrent = existsSync(stamp) && readFileSync(stamp, 'utf8') === digest(sources());
if (isCheck || !isCurrent) {
  const before = digest(filesBelow(generated));
  generate();
  writeFileSync(stamp, digest(sources()));
  if (isCheck && before !== digest(filesBelow(generated))) {
    console.error('src/gen was not what the protos and the Prisma schema give; it has been generated anew.');
    process.exit(1);
  }
}
