import { execFileSync, spawnSync } from 'node:child_process';

/** An ordinary user of the machine: ids of the user and of its group. */
export const nobody = { uid: idOf('-u'), gid: idOf('-g') };

/** Whether this process may act as another user. */
export const isRoot = process.geteuid?.() === 0;

/** Whether `nobody` can run this code: not where the clone lies below a directory that is closed to others. */
export const isOpenToOthers = isRoot && spawnSync('test', ['-r', __filename], nobody).status === 0;

function idOf(flag: '-u' | '-g'): number {
  return Number(execFileSync('id', [flag, 'nobody']).toString());
}
