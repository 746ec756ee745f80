import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Query } from 'pg';

interface Package {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

const packageAt = (path: string): Package => JSON.parse(readFileSync(path, 'utf8')) as Package;

/**
 * `pg-joined-query.ts` overrides what `pg` calls on a query, and nothing promises that it stays so. A new version is taken
 * on purpose, after these and `test/e2e/joined-statements.test.ts` were seen green with it.
 */
describe('the inside of pg', () => {
  it('is of the one version that was looked at', () => {
    expect(packageAt(join(__dirname, '../../package.json')).dependencies['pg']).toBe('8.23.1');
    expect(packageAt(require.resolve('pg/package.json')).version).toBe('8.23.1');
  });

  it('has the methods that are overridden, on the prototype and nowhere else', () => {
    expect(Object.getOwnPropertyDescriptors(Query.prototype)).toMatchObject({
      submit: { value: expect.any(Function) as unknown },
      handleCommandComplete: { value: expect.any(Function) as unknown },
    });
    expect(Object.keys(new Query({ text: 'SELECT 1', name: 'one' }))).not.toEqual(
      expect.arrayContaining(['submit', 'handleCommandComplete']),
    );
  });

  it('reads the name of a query from a property that may change', () => {
    const query = Object.assign(new Query({ text: 'SELECT 1', name: 'one' }), { name: undefined });
    expect(query).toMatchObject({ name: undefined, text: 'SELECT 1' });
    expect(Object.getOwnPropertyDescriptor(new Query({ text: 'SELECT 1', name: 'one' }), 'name')).toMatchObject({
      ...{ value: 'one', writable: true },
    });
  });

  it('sends statements as they come where it is told to', () => {
    expect(new Client({ pipeline: true }).pipeline).toBe(true);
  });
});
