import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';

const ROOT = join(__dirname, '../..');

// Who wants no metrics needs no Prometheus: the library must not bring it along.
jest.mock('prom-client', () => {
  throw new Error('prom-client was loaded');
});

test('neither the library nor the payments client loads prom-client; both kinds of metrics do', () => {
  expect(() => jest.requireActual<object>('../../src/idempotency/index')).not.toThrow();
  expect(() => jest.requireActual<object>('../../src/payments/payments-client')).not.toThrow();
  expect(() => jest.requireActual<object>('../../src/ops/client-metrics')).toThrow('prom-client was loaded');
  expect(() => jest.requireActual<object>('../../src/ops/server-metrics')).toThrow('prom-client was loaded');
});

test('the metrics of a server know nothing of this service', async () => {
  const manifest = jest.requireActual<{ exports: Readonly<Record<string, { readonly default: string }>> }>(
    '../../package.json',
  );
  expect(manifest.exports['./server-metrics']?.default).toBe('./dist/ops/server-metrics.js');
  const seen = new Set<string>();
  const collect = async (file: string): Promise<void> => {
    if (seen.has(file)) return;
    seen.add(file);
    const source = await readFile(file, 'utf8');
    for (const [, from = ''] of source.matchAll(/ from '(\.[^']+)'/g)) await collect(join(dirname(file), `${from}.ts`));
  };
  await collect(join(ROOT, 'src/ops/server-metrics.ts'));
  const others = [...seen]
    .map((file) => relative(ROOT, file))
    .filter((file) => !/^src\/(idempotency|gen)\//.test(file));
  expect(others.map((file) => basename(file)).sort()).toEqual([
    'grpc-labels.ts',
    'idempotency-metrics.ts',
    'retention-metrics.ts',
    'server-metrics.ts',
  ]);
});

test('what a copy of the example of an own service and the guides need is in the package', () => {
  const { files } = jest.requireActual<{ files: readonly string[] }>('../../package.json');
  expect(files).toEqual(expect.arrayContaining(['dist', 'docs', 'examples/own-service', 'prisma/migrations']));
});

test('what the package exports is what the build makes of files that are there', () => {
  const { exports } = jest.requireActual<{ exports: Readonly<Record<string, string | { readonly default: string }>> }>(
    '../../package.json',
  );
  const built = Object.values(exports).flatMap((target) => (typeof target === 'string' ? [] : [target.default]));
  expect(built.length).toBeGreaterThanOrEqual(2);
  const sources = built.map((file) => file.replace(/^\.\/dist\//, 'src/').replace(/\.js$/, '.ts'));
  expect(sources.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});
