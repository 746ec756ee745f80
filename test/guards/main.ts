/**
 * Takes every check out of a copy of the sources, one at a time, and runs the tests that should see it:
 * `tsx test/guards/main.ts [--only TEXT] [--list] [--workers N] [--tests FILE]`. Prints which test caught it; a check that
 * no test misses is a survivor, and the exit code 1.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CHECKS_IN_CODE } from './checks-in-code';
import { type GuardsCluster, startGuardsCluster } from './cluster';
import { codeGuards } from './code-guards';
import { type CopiedTree, copyTree } from './copied-tree';
import type { Guard } from './guard';
import { runTests } from './run-tests';
import { sqlGuards } from './sql-guards';
import { brokenStatements } from './still-sql';
import { testsOfStatement } from './tests-of-statements';

const ROOT = join(__dirname, '..', '..');

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      list: { type: 'boolean' },
      workers: { type: 'string', default: '2' },
      tests: { type: 'string' },
    },
  });
  const found = [await sqlGuards(ROOT, testsOfStatement), await codeGuards(ROOT, CHECKS_IN_CODE)];
  const faults = found.flatMap((each) => each.faults);
  if (faults.length > 0) {
    console.log(`The lists in test/guards do not fit the sources:\n${faults.join('\n')}`);
    // Whoever works on a few checks need not wait for the others.
    if (values.only === undefined) return false;
  }
  const { only = '', tests } = values;
  const guards = found
    .flatMap((each) => each.guards)
    .filter(({ name }) => name.includes(only))
    // To see what one file catches, whatever it is meant for.
    .map((guard) => (tests === undefined ? guard : { ...guard, tests: [tests] }));
  if (values.list === true) {
    for (const { name, tests } of guards) console.log(`${name}\n    ${tests.join(' ')}`);
    console.log(`${String(guards.length)} guards`);
    return true;
  }
  if (guards.length === 0) throw new Error(`no guard's name includes ${only}`);
  const cluster = await startGuardsCluster();
  const trees: CopiedTree[] = [];
  const end = async (): Promise<void> => {
    for (const tree of trees) await tree.remove();
    await cluster.stop();
  };
  process.once('SIGINT', () => void end().finally(() => process.exit(130)));
  process.once('SIGTERM', () => void end().finally(() => process.exit(143)));
  try {
    const broken = await cluster.withDatabase((connectionString) => brokenStatements(connectionString, guards));
    if (broken.length > 0) throw new Error(`these are no statements without their check:\n${broken.join('\n')}`);
    const workers = Math.max(1, Math.min(Number(values.workers), guards.length));
    for (let worker = 0; worker < workers; worker += 1) trees.push(await copyTree(ROOT));
    await expectGreen(trees, guards, cluster);
    return await takeOutEach(trees, guards, cluster);
  } finally {
    await end();
  }
}

/** A test that fails anyhow catches nothing. Once is allowed, since many things run here at once. */
async function expectGreen(
  trees: readonly CopiedTree[],
  guards: readonly Guard[],
  cluster: GuardsCluster,
): Promise<void> {
  const files = [...new Set(guards.flatMap(({ tests }) => tests))].sort();
  const waiting = [...files];
  const work = async ({ directory }: CopiedTree): Promise<void> => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const first = await runTests(directory, [file], cluster.environment);
      const end = first.kind === 'green' ? first : await runTests(directory, [file], cluster.environment);
      if (end.kind !== 'green') {
        throw new Error(`tests must pass before a check is taken out: ${file} ${JSON.stringify(end, null, 2)}`);
      }
    }
  };
  await Promise.all(trees.map(work));
  console.log(`${String(files.length)} test files pass with all checks in place`);
}

async function takeOutEach(
  trees: readonly CopiedTree[],
  guards: readonly Guard[],
  cluster: GuardsCluster,
): Promise<boolean> {
  const startedAt = performance.now();
  const waiting = [...guards];
  const survivors: string[] = [];
  const work = async (tree: CopiedTree): Promise<void> => {
    for (let guard = waiting.shift(); guard !== undefined; guard = waiting.shift()) {
      const verdict = await takeOut(tree, guard, cluster);
      if (!verdict.caught) survivors.push(guard.name);
      console.log(`${verdict.caught ? 'caught  ' : 'SURVIVED'} ${guard.name}\n      → ${verdict.by}`);
    }
  };
  await Promise.all(trees.map(work));
  const seconds = String(Math.round((performance.now() - startedAt) / 1000));
  for (const name of survivors) console.log(`SURVIVED ${name}`);
  console.log(`${String(guards.length)} guards, ${String(survivors.length)} survived, ${seconds} s`);
  return survivors.length === 0;
}

async function takeOut(
  tree: CopiedTree,
  guard: Guard,
  cluster: GuardsCluster,
): Promise<{ readonly caught: boolean; readonly by: string }> {
  return tree.without(guard, async () => {
    for (const file of guard.tests) {
      const end = await runTests(tree.directory, [file], cluster.environment);
      if (end.kind === 'red') return { caught: true, by: `${end.file}: ${end.test}\n        ${end.message}` };
      if (end.kind === 'broken') return { caught: false, by: `no test ran: ${end.message}` };
    }
    return { caught: false, by: `passed without it: ${guard.tests.join(', ')}` };
  });
}

main().then(
  (allCaught) => {
    process.exitCode = allCaught ? 0 : 1;
  },
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  },
);
