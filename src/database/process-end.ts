import { readFileSync } from 'node:fs';

/** How often it is looked whether a process still runs, milliseconds. */
const LOOK_EVERY_MS = 1_000;

/**
 * Tells once when a process is gone that is no child of ours, within a second or so.
 *
 * @returns ends the watch
 */
export function watchForEnd(pid: number, onEnd: () => void): () => void {
  const timer = setInterval(() => {
    if (isRunning(pid)) return;
    clearInterval(timer);
    onEnd();
  }, LOOK_EVERY_MS);
  // To watch is no reason to stay.
  timer.unref();
  return () => clearInterval(timer);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0) && !isZombie(pid);
  } catch (error) {
    // It runs as somebody else.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Whether it has ended and keeps its number until its parent asks after it: a first process of a container mostly never does. */
function isZombie(pid: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // Behind the name, which may hold anything.
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z');
  } catch {
    return false;
  }
}
