import { COMMANDS } from '../../src/cli/commands';
import { runCommand } from '../../src/cli/run-command';

/** Runs a command line; no database is reached, or it would be an error. */
async function run(...args: readonly string[]) {
  const lines: string[] = [];
  const errors: string[] = [];
  const code = await runCommand({
    ...{ commands: COMMANDS, args, environment: { DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/none' } },
    print: (line) => void lines.push(...line.split('\n')),
    printError: (line) => void errors.push(...line.split('\n')),
  });
  return { code, lines, errors };
}

/** Every word of an option, `--json`. */
const optionsIn = (text: string): readonly string[] => text.match(/--[a-z-]+/g) ?? [];

it('the help lists all commands in one style: a line of usage, a line of what it does', async () => {
  const { code, lines } = await run('--help');
  expect(code).toBe(0);
  expect(lines.slice(0, -2)).toEqual([
    'usage:',
    ...COMMANDS.flatMap(({ name, usage, summary }) => [
      `  grpc-idempotency ${name} ${usage}`.trimEnd(),
      `      ${summary}`,
    ]),
  ]);
  expect(COMMANDS.map(({ name }) => name).sort()).toEqual(
    [
      'migrate',
      'maintain',
      'inspect',
      'release',
      'expire',
      'outbox',
      'reconcile',
      'check-proto',
      'service-config',
    ].sort(),
  );
  expect(lines.at(-1)).toMatch(/DATABASE_URL.*DATA_DIRECTORY, default \.data of the current folder\.$/);
  for (const { summary } of COMMANDS) {
    expect(summary.length).toBeLessThanOrEqual(110);
    expect(summary).toMatch(/^[a-z].*[^.]$/);
  }
});

describe.each(COMMANDS.map((command) => [command.name, command] as const))('%s', (name, command) => {
  it.each(['--help', '-h'])('%s shows its options and an example, and reaches nothing', async (word) => {
    const { code, lines } = await run(name, word);
    expect(code).toBe(0);
    const example = lines[lines.indexOf('example:') + 1] ?? '';
    expect(example).toMatch(new RegExp(`^  npx grpc-idempotency ${name}( |$)`));
    // An example uses what there is, and everything that there is is told of.
    const known = optionsIn(command.usage);
    expect(known).toEqual(expect.arrayContaining([...optionsIn(example)]));
    expect(known).toEqual(expect.arrayContaining(optionsIn((command.details ?? []).join(' '))));
    expect(lines.every((line) => line.length <= 160)).toBe(true);
  });

  it('names an option that it does not have, with its usage and 2', async () => {
    const { code, lines, errors } = await run(name, '--nonsense');
    expect([code, lines]).toEqual([2, []]);
    expect(errors.at(-1)).toContain(`'--nonsense'`);
    expect(errors).toContain(`  grpc-idempotency ${name} ${command.usage}`.trimEnd());
  });
});
