import { findConditions } from './sql-conditions';

const found = (sql: string): readonly string[] => findConditions(sql).map(({ kind, text }) => `${kind}: ${text}`);
const without = (sql: string): readonly string[] => findConditions(sql).map((condition) => condition.without);

describe('the conditions of a statement', () => {
  it('are each operand of its WHERE, and the statement without one keeps the others and all parameters', () => {
    const sql = `UPDATE t SET a = $1 WHERE b = $2 AND c = 'x AND y' RETURNING a`;
    expect(found(sql)).toEqual(['WHERE: b = $2', `WHERE: c = 'x AND y'`]);
    expect(without(sql)).toEqual([
      `UPDATE t SET a = $1 WHERE ((b = $2) OR true) AND c = 'x AND y' RETURNING a`,
      `UPDATE t SET a = $1 WHERE b = $2 AND ((c = 'x AND y') OR true) RETURNING a`,
    ]);
  });

  it('are found in every part of a statement, at any depth', () => {
    const sql = `WITH old AS (SELECT 1 FROM t WHERE a = 1)
      DELETE FROM t USING old WHERE b = (SELECT max(b) FROM u WHERE c = 2) AND NOT (d OR e) AND f = ANY (ARRAY[1])`;
    expect(found(sql)).toEqual([
      'WHERE: a = 1',
      'WHERE: b = (SELECT max(b) FROM u WHERE c = 2)',
      'WHERE: NOT (d OR e)',
      'WHERE: d',
      'WHERE: e',
      'WHERE: f = ANY (ARRAY[1])',
      'WHERE: c = 2',
    ]);
  });

  it('that are one of several are taken out so that the others decide', () => {
    expect(without('SELECT FROM t WHERE (a OR b)').slice(1)).toEqual([
      'SELECT FROM t WHERE (((a) AND false) OR b)',
      'SELECT FROM t WHERE (a OR ((b) AND false))',
    ]);
  });

  it('are those of joins too', () => {
    expect(found('SELECT FROM a LEFT JOIN b ON a.x = b.x AND b.y LEFT JOIN c ON true WHERE d')).toEqual([
      'ON: a.x = b.x',
      'ON: b.y',
      'WHERE: d',
    ]);
  });

  it('are locks, conflicts, limits and settings', () => {
    expect(
      found(`WITH s AS (SELECT set_config('a', $1, true)) INSERT INTO t SELECT FROM u ORDER BY v LIMIT $2
      FOR UPDATE SKIP LOCKED ON CONFLICT (v) DO NOTHING`),
    ).toEqual([
      `set_config: set_config('a', $1, true)`,
      'ORDER BY: ORDER BY v',
      'LIMIT: $2',
      'FOR UPDATE: FOR UPDATE SKIP LOCKED',
      'SKIP LOCKED: SKIP LOCKED',
      'ON CONFLICT: ON CONFLICT (v) DO NOTHING',
    ]);
    expect(without('SELECT FROM t LIMIT $1')).toEqual(['SELECT FROM t LIMIT greatest($1, 1000000)']);
    expect(without('SELECT FROM t LIMIT 1')).toEqual(['SELECT FROM t ']);
  });

  it('do not include the order of rows that are only told', () => {
    expect(found('SELECT a FROM t ORDER BY a')).toEqual([]);
  });

  it('are refused where an AND is none', () => {
    expect(() => findConditions('SELECT FROM t WHERE a BETWEEN 1 AND 2')).toThrow('BETWEEN is not understood');
  });
});
