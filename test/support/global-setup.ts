import { randomUUID } from 'node:crypto';
import { migrate } from '../../src/database/migrate';
import { CLUSTER_URL, inCluster, startInTemporaryDirectory, TEMPLATE_DATABASE, withDatabase } from './postgres';
import { beginTestRun } from './test-run';

/**
 * Once per run: a cluster (the one of TEST_DATABASE_URL, else one of our own that goes with the run) and in it a
 * migrated template database, which each test file clones.
 */
export default async function setUp(): Promise<void> {
  const run = beginTestRun();
  let clusterUrl = process.env['TEST_DATABASE_URL'];
  if (clusterUrl === undefined) {
    const { postgres, remove } = await startInTemporaryDirectory();
    clusterUrl = postgres.connectionString;
    run.atEnd(remove);
  }
  const cluster = clusterUrl;
  const template = `template_${randomUUID().replaceAll('-', '')}`;
  run.atEnd(() =>
    inCluster(cluster, async (client) => {
      await client.query(`DROP DATABASE IF EXISTS ${template} WITH (FORCE)`);
    }),
  );
  await inCluster(cluster, async (client) => {
    await client.query(`CREATE DATABASE ${template} TEMPLATE template0`);
  });
  await migrate({ connectionString: withDatabase(cluster, template) });
  process.env[CLUSTER_URL] = cluster;
  process.env[TEMPLATE_DATABASE] = template;
}
