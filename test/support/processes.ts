import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly state: string;
  readonly words: string;
}

async function processes(): Promise<readonly Process[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-ww', '-o', 'pid=,ppid=,stat=,args='], {
    maxBuffer: 16 * 1024 * 1024,
  });
  return [...stdout.matchAll(/^ *(\d+) +(\d+) +(\S+) +(.*)$/gm)].map(([, pid, parent, state = '', words = '']) => {
    return { pid: Number(pid), parent: Number(parent), state, words };
  });
}

/** Whether a process runs. One that has ended and that nobody has asked about yet does not. */
export async function isAlive(pid: number): Promise<boolean> {
  return (await processes()).some((process) => process.pid === pid && !process.state.startsWith('Z'));
}

/** The children of a process that were started with such words. */
export async function childrenOf(parent: number, words: string): Promise<readonly number[]> {
  const all = await processes();
  return all.filter((child) => child.parent === parent && child.words.includes(words)).map(({ pid }) => pid);
}
