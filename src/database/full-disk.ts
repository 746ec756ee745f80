import { OperatorError } from '../operator-error';

/** How Postgres' programs and Node say that there is no room. */
const NO_ROOM = /No space left on device|Disk quota exceeded|ENOSPC|EDQUOT/;

/**
 * Does what needs room on a disk.
 *
 * @param dataDirectory as it was set
 * @throws what was thrown; where that says that a disk is full, an Error that also says what to do
 */
export async function withAdviceOnFullDisk<Value>(dataDirectory: string, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    if (!NO_ROOM.test(message)) throw cause;
    throw new OperatorError(
      `${message}\nThe disk is full. Make room for the data directory ${dataDirectory}, or set DATA_DIRECTORY to ` +
        'a directory on another disk, where it starts empty.',
      { cause },
    );
  }
}
