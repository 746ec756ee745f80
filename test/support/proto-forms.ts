import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { loadSync, type PackageDefinition } from '@grpc/proto-loader';
import type { GenericDefinition } from '../../src/idempotency/index';
import { ROOT } from './run-program';

/** Protos as text, by path; they may import those of this package. */
export type ProtoSources = Readonly<Record<string, string>>;

/** What buf compiles: the given protos and those of this package. */
export function descriptorSetOf(sources: ProtoSources): Uint8Array {
  return withProtos(sources, (protos) => buf('build', protos, '--as-file-descriptor-set', '-o', '-#format=binpb'));
}

/** @param loaded what proto-loader loads, with its imports; default: the given protos and those of this package */
export function packageDefinitionOf(sources: ProtoSources, loaded?: readonly string[]): PackageDefinition {
  return withProtos(sources, (protos) =>
    loadSync([...(loaded ?? filesBelow(protos, '.proto'))], { includeDirs: [protos], keepCase: true }),
  );
}

/** What ts-proto generates of the given protos and those of this package. */
export function genericDefinitionsOf(sources: ProtoSources): readonly GenericDefinition[] {
  return withProtos(sources, (protos, folder) => {
    const out = join(folder, 'gen');
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const opt = [
      'outputServices=generic-definitions',
      'forceLong=bigint',
      'unknownFields=true',
      'esModuleInterop=true',
    ];
    const local = join(ROOT, 'node_modules', '.bin', 'protoc-gen-ts_proto');
    const template = { version: 'v2', plugins: [{ local, out, include_imports: true, opt }] };
    buf('generate', protos, '--template', JSON.stringify(template));
    const load = createRequire(__filename);
    return filesBelow(out, '.ts')
      .flatMap((path) => Object.entries(load(join(out, path)) as Record<string, unknown>))
      .filter(([name]) => name.endsWith('Definition'))
      .map(([, exported]) => exported as GenericDefinition);
  });
}

function withProtos<Result>(sources: ProtoSources, work: (protos: string, folder: string) => Result): Result {
  const folder = mkdtempSync(join(tmpdir(), 'proto-forms-'));
  try {
    const protos = join(folder, 'proto');
    cpSync(join(ROOT, 'proto'), protos, { recursive: true });
    for (const [path, source] of Object.entries(sources)) {
      mkdirSync(dirname(join(protos, path)), { recursive: true });
      writeFileSync(join(protos, path), source);
    }
    return work(protos, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function buf(...args: readonly string[]): Buffer {
  return execFileSync(join(ROOT, 'node_modules', '.bin', 'buf'), args);
}

function filesBelow(folder: string, ending: string): readonly string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith(ending)).sort();
}
