import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../support/run-program';

/** What `npm run breaking` runs. */
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly scripts: { readonly breaking: string; readonly verify: string };
};
const [program = '', ...args] = scripts.breaking.split(' ');

let copy: string;
beforeEach(() => {
  copy = mkdtempSync(join(tmpdir(), 'buf-breaking-'));
  for (const name of ['proto', 'buf.yaml']) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
});
afterEach(() => rmSync(copy, { recursive: true, force: true }));

function check(): { readonly code: number | null; readonly output: string } {
  const { status, stdout } = spawnSync(join(ROOT, 'node_modules', '.bin', program), args, { cwd: copy });
  return { code: status, output: stdout.toString() };
}

function changeProto(from: string, to: string): void {
  const file = join(copy, 'proto', 'payments', 'v1', 'payments.proto');
  const text = readFileSync(file, 'utf8');
  expect(text).toContain(from);
  writeFileSync(file, text.replace(from, to));
}

test('protos that only add to what was released go in', () => {
  expect(check()).toEqual({ code: 0, output: '' });
  changeProto('string payment_method = 4;', 'string payment_method = 4;\n  // Added.\n  string note = 60;');
  expect(check()).toEqual({ code: 0, output: '' });
});

test('a field with another number than the released one is refused, by name', () => {
  changeProto('string payment_method = 4;', 'string payment_method = 61;');
  const { code, output } = check();
  expect(code).not.toBe(0);
  expect(output).toMatch(/field "4" with name "payment_method" on message "CreatePaymentRequest"/);
});

test('a method with another level than the released one is refused: clients read it', () => {
  changeProto('option idempotency_level = NO_SIDE_EFFECTS;', 'option idempotency_level = IDEMPOTENT;');
  const { code, output } = check();
  expect(code).not.toBe(0);
  expect(output).toMatch(/"GetPayment".*"idempotency_level" from "NO_SIDE_EFFECTS" to "IDEMPOTENT"/);
});

test('the check is part of what must hold before a change goes in', () => {
  expect(scripts.verify).toContain('npm run --silent breaking');
});
