import { createStatementNames } from '../../src/database/statement-names';

test('a text keeps its name, another one gets another, and beyond the limit texts are unnamed', () => {
  const nameOf = createStatementNames(2);
  const first = nameOf({ sql: 'SELECT 1' });
  const second = nameOf({ sql: 'SELECT 2' });
  expect(first).not.toBe('');
  expect(second).not.toBe(first);
  expect(nameOf({ sql: 'SELECT 3' })).toBe('');
  expect(nameOf({ sql: 'SELECT 1' })).toBe(first);
});
