import { existsSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(__dirname, '../..');

// Who wants no metrics needs no Prometheus: the library must not bring it along.
jest.mock('prom-client', () => {
  throw new Error('prom-client was loaded');
});

test('neither the library nor the payments client loads prom-client; the client metrics do', () => {
  expect(() => jest.requireActual<object>('../../src/idempotency/index')).not.toThrow();
  expect(() => jest.requireActual<object>('../../src/payments/payments-client')).not.toThrow();
  expect(() => jest.requireActual<object>('../../src/ops/client-metrics')).toThrow('prom-client was loaded');
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
