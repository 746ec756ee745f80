/**
 * Runs tests on other databases than the one of the routine run: `tsx test/other-databases/main.ts [--only TEXT]
 * [--install] [FILES]`. An older Postgres, another time zone, other isolation levels by default. Without files, those of the
 * store. Prints a table; the exit code is 1 when a test failed anywhere.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { inCluster } from '../support/postgres';
import { type Variant, VARIANTS } from './variants';

const ROOT = join(__dirname, '..', '..');

/** What jest's report says of a run. */
interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numFailedTestSuites: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

async function main(): Promise<boolean> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { only: { type: 'string', default: '' }, install: { type: 'boolean', default: false } },
  });
  const files = positionals.length > 0 ? positionals : ['test/store'];
  const variants = VARIANTS.filter(({ name }) => name.includes(values.only));
  if (variants.length === 0) throw new Error(`no database's name includes ${values.only}`);
  let isGreen = true;
  console.log(line('database', 'version', 'passed', 'failed'));
  for (const variant of variants) {
    isGreen = (await runOn(variant, files, values.install)) && isGreen;
  }
  return isGreen;
}

async function runOn(variant: Variant, files: readonly string[], install: boolean): Promise<boolean> {
  const database = await variant.start({ install });
  if ('missing' in database) {
    console.log(line(variant.name, 'not run', '', '', database.missing));
    return true;
  }
  try {
    const version = await versionOf(database.connectionString);
    const report = await runJest(files, database.connectionString);
    console.log(line(variant.name, version, String(report.numPassedTests), String(report.numFailedTests)));
    for (const { name, assertionResults } of report.testResults) {
      const failed = assertionResults.filter(({ status }) => status === 'failed');
      for (const { fullName } of failed) console.log(`    ${name.replace(`${ROOT}/`, '')}: ${fullName}`);
    }
    return report.numFailedTestSuites === 0;
  } finally {
    await database.stop();
  }
}

async function versionOf(connectionString: string): Promise<string> {
  let version = '';
  await inCluster(connectionString, async (client) => {
    const { rows } = await client.query<{ server_version: string }>('SHOW server_version');
    version = rows[0]?.server_version.split(' ')[0] ?? '';
  });
  return version;
}

async function runJest(files: readonly string[], connectionString: string): Promise<Report> {
  const directory = await mkdtemp(join(tmpdir(), 'grpc-idempotency-report-'));
  const reportFile = join(directory, 'report.json');
  try {
    const child = spawn(
      process.execPath,
      [join(ROOT, 'node_modules/jest/bin/jest.js'), '--runInBand', '--json', '--outputFile', reportFile, ...files],
      { cwd: ROOT, env: { ...process.env, TEST_DATABASE_URL: connectionString }, stdio: 'ignore' },
    );
    await once(child, 'close');
    return JSON.parse(await readFile(reportFile, 'utf8')) as Report;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function line(name: string, version: string, passed: string, failed: string, note = ''): string {
  return `${name.padEnd(32)}${version.padEnd(10)}${passed.padStart(8)}${failed.padStart(8)}  ${note}`.trimEnd();
}

main().then(
  (isGreen) => {
    process.exitCode = isGreen ? 0 : 1;
  },
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  },
);
