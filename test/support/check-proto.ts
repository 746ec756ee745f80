import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkProtoCommand } from '../../src/cli/check-proto-command';
import { runCommand } from '../../src/cli/run-command';
import { levelOf, policyOf, serviceWith } from './service-proto';

const folder = mkdtempSync(join(tmpdir(), 'check-proto-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Writes a file and returns its path. */
export function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** Runs `check-proto` in this process. */
export async function check(...args: readonly string[]) {
  const printed: string[] = [];
  const errors: string[] = [];
  const code = await runCommand({
    commands: [checkProtoCommand],
    args: ['check-proto', ...args],
    environment: {},
    print: (line) => printed.push(line),
    printError: (line) => errors.push(line),
  });
  const faults = printed.filter((line) => line.startsWith('fault: ')).map((line) => line.slice('fault: '.length));
  return { code, printed, faults, errors: errors.join('\n') };
}

/** Methods of every kind, by how safe it is to send them twice. */
export const set = file(
  'set.binpb',
  serviceWith({
    Safe: levelOf('NO_SIDE_EFFECTS'),
    Idempotent: levelOf('IDEMPOTENT'),
    Keyed: '',
    Ignored: policyOf('key: KEY_REQUIREMENT_IGNORED'),
    Optional: policyOf('key: KEY_REQUIREMENT_OPTIONAL'),
    Observed: policyOf('enforcement: ENFORCEMENT_OBSERVE'),
    Detached: policyOf('allow_detached: true'),
    'rpc SafeStream(M) returns (stream M)': levelOf('NO_SIDE_EFFECTS'),
    'rpc Stream(M) returns (stream M)': policyOf('unprotected_stream: true'),
    'rpc Upload(stream M) returns (M)': levelOf('IDEMPOTENT') + policyOf('unprotected_stream: true'),
  }),
);
/** Those that nothing may resend that knows no keys. */
export const UNSAFE = ['Ignored', 'Optional', 'Observed', 'Detached', 'Stream', 'Upload'].map(
  (name) => `/t.v1.S/${name}`,
);

/** The methods that faults are about, in their order. */
export const methodsIn = (faults: readonly string[]) => faults.map((fault) => /\/t\.v1\.S\/\w+/.exec(fault)?.[0]);
