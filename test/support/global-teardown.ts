import './test-run';

/** Once per run, after all tests: leaves nothing running and nothing behind. */
export default async function tearDown(): Promise<void> {
  await globalThis.grpcIdempotencyTestRun?.end();
}
