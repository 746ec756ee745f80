import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * The directory of this package: the nearest one upwards that holds a package.json. The same from `src/` and from
 * `dist/`, so that files beside the code (migrations, protos) are found however the program was started.
 *
 * @param from absolute path to start at; default: where this file lies
 * @throws Error when no package.json is found up to the root of the file system
 */
export function packageRoot(from: string = __dirname): string {
  for (let directory = from; ; directory = dirname(directory)) {
    if (existsSync(join(directory, 'package.json'))) return directory;
    if (directory === dirname(directory)) throw new Error(`No package.json in ${from} or above it.`);
  }
}
