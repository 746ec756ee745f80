import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { descriptorSet } from '../../src/gen/descriptor-set';
import { ROOT } from '../support/run-program';
import { policyOf, serviceWith } from '../support/service-proto';

/** Runs the program of `npx grpc-idempotency` with bytes on its standard input. */
function checkProto(input: Uint8Array, ...args: readonly string[]) {
  const words = ['--import', 'tsx', join(ROOT, 'src', 'cli', 'main.ts'), 'check-proto', ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd: ROOT, input, encoding: 'utf8' });
  return { code: status, lines: stdout.trimEnd().split('\n'), errors: stderr };
}

describe('grpc-idempotency check-proto', () => {
  const folder = mkdtempSync(join(tmpdir(), 'check-proto-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  it('reads a descriptor set from standard input', () => {
    const { code, lines } = checkProto(descriptorSet, '-');
    expect(lines).toContain(
      '/payments.v1.PaymentsService/CreatePayment: level UNKNOWN, key REQUIRED, resent safely under its key',
    );
    expect([code, lines.at(-1)]).toEqual([0, expect.stringMatching(/^\d+ methods, 0 faults$/)]);
  });

  it('ends with 1 for faults and with 2 for words that it does not understand', () => {
    const envoy = join(folder, 'envoy.yaml');
    writeFileSync(
      envoy,
      'virtual_hosts: [{name: shop, routes: [{match: {prefix: /}, route: {retry_policy: {retry_on: 5xx}}}]}]',
    );
    const unsafe = checkProto(serviceWith({ Pay: policyOf('key: KEY_REQUIREMENT_OPTIONAL') }), '--envoy', envoy, '-');
    expect(unsafe).toMatchObject({ code: 1, errors: '' });
    expect(unsafe.lines.slice(1)).toEqual([
      `fault: ${envoy}: virtual host "shop", route 1: /t.v1.S/Pay: unsafe: retry_on 5xx, since its level is unknown and ` +
        'calls may come without a key; retry_on reset-before-request alone, or require a key: ' +
        '(idempotency.v1.policy) = {key: KEY_REQUIREMENT_REQUIRED}',
      '1 methods, 1 faults',
    ]);
    expect(checkProto(Buffer.alloc(0), 'proto')).toMatchObject({
      code: 2,
      errors: expect.stringContaining('buf build') as string,
    });
  });
});
