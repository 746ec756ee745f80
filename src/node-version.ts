/** The oldest Node that this package runs on, as in `engines` of package.json. */
const OLDEST = { major: 20, minor: 19 };

/**
 * What is wrong with a version of Node; undefined where nothing is.
 *
 * This file and those that are loaded before it are written in what an old Node can read: it could not say anything else.
 *
 * @param version as in `process.versions.node`
 */
export function nodeFault(version: string): string | undefined {
  const numbers = version.split('.').map(Number);
  const major = Number(numbers[0]);
  const isOld = major < OLDEST.major || (major === OLDEST.major && Number(numbers[1]) < OLDEST.minor);
  const needed = `${OLDEST.major}.${OLDEST.minor}`;
  return isOld ? `Node ${version} is too old: grpc-idempotency needs Node ${needed} or newer.` : undefined;
}
