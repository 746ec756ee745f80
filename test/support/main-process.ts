import { join } from 'node:path';
import { ROOT, runProgram, type RunningProgram } from './run-program';

/** The service as `npm start` runs it, in a process of its own, once it is ready. */
export interface MainProcess extends RunningProgram {
  readonly grpcPort: number;
  readonly opsPort: number;
}

const READY = /^ready: gRPC on [^ ]+:(\d+), metrics on http:\/\/[^ ]+:(\d+)\/metrics$/m;

/** Starts `src/main.ts`, on free ports unless told otherwise; resolves when it has said that it is ready. */
export async function startMainProcess(environment: Readonly<Record<string, string>>): Promise<MainProcess> {
  const run = runMain(environment);
  const ports = await run.printed(READY);
  return { ...run, grpcPort: Number(ports[1]), opsPort: Number(ports[2]) };
}

/** Starts `src/main.ts`, on free ports unless told otherwise, whatever becomes of it. */
export function runMain(environment: Readonly<Record<string, string>>): RunningProgram {
  const main = join(ROOT, 'src', 'main.ts');
  return runProgram(['--import', 'tsx', main], { GRPC_PORT: '0', OPS_PORT: '0', ...environment });
}
