import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(__dirname, '..', '..');

/**
 * Compiles one proto file, which may import those of this package, with all its imports and nothing else.
 *
 * @returns a serialized google.protobuf.FileDescriptorSet
 */
export function compileProto(source: string): Uint8Array {
  const folder = mkdtempSync(join(tmpdir(), 'compile-proto-'));
  try {
    cpSync(join(root, 'proto'), folder, { recursive: true });
    const file = join(folder, 'test.proto');
    writeFileSync(file, source);
    const build = ['build', folder, '--path', file, '--as-file-descriptor-set', '-o', '-#format=binpb'];
    return execFileSync(join(root, 'node_modules', '.bin', 'buf'), build);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
