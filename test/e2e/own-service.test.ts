import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTestDatabase, type TestDatabase } from '../support/postgres';
import { ROOT, type RunningProgram, runProgram } from '../support/run-program';

// Programs of their own start slowly on a busy machine.
jest.setTimeout(60_000);

describe('the example of a service of your own', () => {
  let database: TestDatabase;
  let server: RunningProgram;
  let address: string;

  beforeAll(async () => {
    database = await createTestDatabase();
    server = runProgram(['examples/own-service/server.js'], {
      DATABASE_URL: database.connectionString,
      PARCELS_ADDRESS: '127.0.0.1:0',
    });
    const [, port = ''] = await server.printed(/parcels on 127\.0\.0\.1:(\d+)/);
    address = `127.0.0.1:${port}`;
  });

  afterAll(async () => {
    server.kill('SIGKILL');
    await server.exited;
    await database.drop();
  });

  const ship = () => runProgram(['examples/own-service/client.js'], { PARCELS_ADDRESS: address });

  it('ships once in two attempts under one key, for a dated key too', async () => {
    const client = ship();
    expect(await client.exited).toBe(0);
    expect(client.output()).toMatch(/^shipped {2}([0-9a-f-]{36})\nretried {2}\1\n$/);
    expect(await database.count('parcels')).toBe(1);
    expect(
      await database.rows('SELECT state, bucket::text <> $1 AS dated FROM idempotency_record', ['1970-01-01']),
    ).toEqual([{ state: 'completed', dated: true }]);
  });

  it('ends when it is told to, and lets go of everything', async () => {
    server.kill('SIGTERM');
    expect(await server.exited).toBe(0);
    expect(server.output()).toMatch(/^parcels on [^\n]+\n$/);
  });

  it('is what docs/adopting.md shows', async () => {
    const guide = await readFile(join(ROOT, 'docs/adopting.md'), 'utf8');
    const source = await readFile(join(ROOT, 'examples/own-service/server.js'), 'utf8');
    const lines = [...guide.matchAll(/```js\n([^]*?)```/g)].flatMap(([, code = '']) => code.split('\n'));
    const code = lines.map((line) => line.trim()).filter((line) => line !== '' && line !== '…');
    expect(code.length).toBeGreaterThan(5);
    for (const line of code) expect(source).toContain(line);
  });
});
