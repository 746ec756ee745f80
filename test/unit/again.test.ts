import { again } from '../../src/idempotency/store/again';
import { postgresCause, statementError } from '../support/database-errors';

const failure = (sqlState: string) => statementError(postgresCause(sqlState));

describe('a statement that is run again (case K4)', () => {
  const failing = (times: number, error: Error) => {
    let runs = 0;
    const statement = () => {
      runs += 1;
      return runs <= times ? Promise.reject(error) : Promise.resolve('done');
    };
    return { statement, runs: () => runs };
  };

  it.each(['40001', '40P01'])('is one that Postgres has chosen for that: %s', async (sqlState) => {
    const { statement, runs } = failing(4, failure(sqlState));

    expect(await again(statement)).toBe('done');
    expect(runs()).toBe(5);
  });

  it('is given up when that does not end', async () => {
    const error = failure('40001');
    const { statement, runs } = failing(Infinity, error);

    await expect(again(statement)).rejects.toBe(error);
    expect(runs()).toBe(5);
  });

  it('is none that failed otherwise', async () => {
    const error = failure('23505');
    const { statement, runs } = failing(1, error);

    await expect(again(statement)).rejects.toBe(error);
    expect(runs()).toBe(1);
  });
});
