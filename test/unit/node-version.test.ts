import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ModuleKind, ScriptTarget, transpileModule } from 'typescript';
import { nodeFault } from '../../src/node-version';
import { ROOT, runProgram } from '../support/run-program';

test.each(['20.19.0', '20.19.4', '20.20.0', '21.0.0', '22.1.0', '100.0.0'])('Node %s will do', (version) => {
  expect(nodeFault(version)).toBeUndefined();
});

test.each(['0.12.18', '14.21.3', '18.20.8', '20.18.3', '20.9.0'])('Node %s is too old', (version) => {
  expect(nodeFault(version)).toBe(`Node ${version} is too old: grpc-idempotency needs Node 20.19 or newer.`);
});

test('the oldest version is that of package.json', () => {
  const { engines } = jest.requireActual<{ engines: { readonly node: string } }>('../../package.json');
  expect(engines.node).toBe('>=20.19');
});

/** What is loaded before the version is known to be new enough. */
const FIRST = ['src/main.ts', 'src/cli/main.ts', 'src/require-node.ts', 'src/node-version.ts'];

test.each(FIRST)('%s is written in what an old Node can read', async (file) => {
  const source = await readFile(join(ROOT, file), 'utf8');
  const options = { module: ModuleKind.CommonJS, target: ScriptTarget.ES2022, removeComments: true };
  const { outputText } = transpileModule(source, { compilerOptions: { ...options, esModuleInterop: true } });
  // What came after Node 10: of the syntax alone, as nothing else is run.
  expect(outputText).not.toMatch(
    /\?\?|\?\.[a-zA-Z[(]|\|\|=|&&=|catch \{|\d_\d|\d+n\b|#\w+|^\s*static \{|\bawait import/m,
  );
});

test.each(['src/main.ts', 'src/cli/main.ts'])(
  '%s looks at the version before anything else is loaded',
  async (file) => {
    const source = await readFile(join(ROOT, file), 'utf8');
    expect(/^import .*;$/m.exec(source)?.[0]).toMatch(/^import '\.\.?\/require-node';$/);
  },
);

test.each(['src/main.ts', 'src/cli/main.ts'])('%s ends with one line and 1 on an old Node', async (file) => {
  const pretend = "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.8' } })";
  const main = runProgram([
    ...['--import', 'tsx', '--import', `data:text/javascript,${encodeURIComponent(pretend)}`],
    ...[pathToFileURL(join(ROOT, file)).pathname, '--help'],
  ]);
  expect(await main.exited).toBe(1);
  expect(main.output()).toBe('Node 18.20.8 is too old: grpc-idempotency needs Node 20.19 or newer.\n');
});
