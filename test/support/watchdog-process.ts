import type { PostgresCluster } from '../../src/database/postgres-cluster';
import { watchPostgres } from '../../src/database/postgres-watchdog';

/** A process that has the server of a cluster watched, says so, and stays until it is killed. */
async function main(cluster: PostgresCluster): Promise<void> {
  await watchPostgres(cluster);
  console.log('watched');
  setInterval(() => undefined, 60_000);
}

void main(JSON.parse(process.argv[2] ?? '') as PostgresCluster);
