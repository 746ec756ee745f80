import { readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTemporaryDirectory } from '../support/postgres';
import { ROOT, runProgram } from '../support/run-program';
import { useService } from '../support/use-service';

const ADDRESS = '127.0.0.1:50051';

interface Package {
  readonly name: string;
  readonly scripts: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
}

describe('the README', () => {
  const used = useService();
  let readme: string;
  let manifest: Package;

  beforeAll(async () => {
    readme = await readFile(join(ROOT, 'README.md'), 'utf8');
    manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as Package;
  });

  /** What each import of this package is built from: `dist/x.js` is `src/x.ts`. */
  function sources(): Readonly<Record<string, string[]>> {
    const built = Object.entries(manifest.exports).flatMap(([name, target]) =>
      typeof target === 'string' ? [] : [[join(manifest.name, name), target.default] as const],
    );
    return Object.fromEntries(
      built.map(([name, file]) => [name, [join(ROOT, file.replace('dist/', 'src/').replace(/\.js$/, '.ts'))]]),
    );
  }

  it('starts with a first call that can be copied', async () => {
    const [, code = ''] = /## A first call[^]*?```js\n([^]*?)```/.exec(readme) ?? [];
    expect(code).toContain(ADDRESS);
    const directory = await makeTemporaryDirectory();
    await writeFile(join(directory, 'call.mts'), code.replace(ADDRESS, `127.0.0.1:${used.service.grpcPort}`));
    await writeFile(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions: { paths: sources() } }));
    await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));

    const call = runProgram(['--import', 'tsx', 'call.mts'], {}, directory);
    expect([await call.exited, call.output()]).toEqual([0, expect.stringMatching(/orderId: 'order-\d+'/)]);
    const [payment] = await used.database.rows<{ payment_id: string }>('SELECT payment_id::text FROM payments');
    expect(call.output().split(payment?.payment_id ?? 'none')).toHaveLength(3);
    expect(call.output().match(/replayed: \w+/g)).toEqual(['replayed: false', 'replayed: true']);
    await rm(directory, { recursive: true });
  });

  it('names an example for a stock client that pays once in two attempts', async () => {
    expect(readme).toContain('node examples/first-payment.js');
    const before = await used.database.count('payments');
    const example = runProgram(['examples/first-payment.js'], {
      PAYMENTS_ADDRESS: `127.0.0.1:${used.service.grpcPort}`,
    });
    expect(await example.exited).toBe(0);
    expect(example.output()).toMatch(
      /^attempt 1: paid, payment ([0-9a-f-]{36})\nattempt 2: the recorded answer, payment \1\n$/,
    );
    expect(await used.database.count('payments')).toBe(before + 1);
  });

  it('names only files and scripts that there are', async () => {
    const links = [...readme.matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map(([, path = '']) => path);
    const programs = [...readme.matchAll(/\bnode ([\w/.-]+)/g)].map(([, path = '']) => path);
    // Its reader makes this one.
    const [, saved = ''] = /save this as `([\w.]+)`/.exec(readme) ?? [];
    expect(programs).toContain(saved);
    const shipped = programs.filter((path) => path !== saved);
    const missing: string[] = [];
    for (const path of [...links, ...shipped, ...Object.values(sources()).flat()]) {
      await stat(path.startsWith('/') ? path : join(ROOT, path)).catch(() => missing.push(path));
    }
    expect(missing).toEqual([]);
    const scripts = [...readme.matchAll(/\bnpm (?:run )?(start|test|(?<=run )\w+)/g)].map(([, script = '']) => script);
    expect(scripts.filter((script) => manifest.scripts[script] === undefined)).toEqual([]);
    expect(scripts).toEqual(expect.arrayContaining(['start', 'test', 'demo']));
  });
});
