import { Client } from 'pg';
import { startEmbeddedPostgres } from '../../src/database/embedded-postgres';

/**
 * A process that starts the embedded database of the directory it is given, prints what came of it as one line of JSON,
 * and on SIGINT first asks the database once more, as running calls would, and only then stops it.
 */
async function main(dataDirectory: string): Promise<void> {
  const lines: string[] = [];
  const postgres = await startEmbeddedPostgres({ dataDirectory, onLog: (line) => lines.push(line), durable: false });
  const client = new Client({ connectionString: postgres.connectionString });
  await client.connect();
  const idle = setInterval(() => undefined, 60_000);
  process.once('SIGINT', () => {
    void (async () => {
      const { rows } = await client.query<{ answer: string }>(`SELECT 'still here' AS answer`);
      console.log(JSON.stringify(rows[0]));
      await client.end();
      await postgres.stop();
      clearInterval(idle);
    })();
  });
  console.log(JSON.stringify({ connectionString: postgres.connectionString, lines }));
}

main(process.argv[2] ?? '').catch((error: unknown) => {
  console.log(JSON.stringify({ error: error instanceof Error ? error.message : String(error) }));
  process.exitCode = 1;
});
