import { compileProto } from './compile-proto';

/** A service `t.v1.S` with the given methods; each is `Name: options`, or a whole rpc where it streams. */
export function serviceWith(methods: Readonly<Record<string, string>>): Uint8Array {
  const rpcs = Object.entries(methods).map(([name, options]) =>
    name.startsWith('rpc ') ? `${name} {${options}}` : `rpc ${name}(M) returns (M) {${options}}`,
  );
  return compileProto(`
    syntax = "proto3";
    package t.v1;
    import "idempotency/v1/policy.proto";
    message M {}
    service S { ${rpcs.join('\n')} }`);
}

/** The option with the given fields. */
export const policyOf = (fields: string): string => `option (idempotency.v1.policy) = {${fields}};`;
/** The level of a method. */
export const levelOf = (level: string): string => `option idempotency_level = ${level};`;
