import { parseArgs } from 'node:util';
import { type Command, EXIT, UsageError } from '../../src/cli/command';
import { runCommand } from '../../src/cli/run-command';
import { ConfigError } from '../../src/config';
import { MigrationRefused } from '../../src/database/migrate';

const manifest = jest.requireActual<{ readonly version: string }>('../../package.json');

const SWEPT = { details: ['and under the table'], example: 'grpc-idempotency sweep --dry' };

/** Runs a command line with commands whose one really runs `work`. */
async function run(args: readonly string[], work: Command['run'] = async () => EXIT.ok) {
  const printed: string[] = [];
  const errors: string[] = [];
  const code = await runCommand({
    commands: [
      { ...{ name: 'sweep', usage: '[--dry]', summary: 'sweeps the floor', run: work }, ...SWEPT },
      { name: 'wash', usage: '', summary: 'washes the dishes', example: 'wash', run: async () => EXIT.refused },
    ],
    args,
    environment: { HOME: '/home/shop' },
    print: (line) => printed.push(line),
    printError: (line) => errors.push(line),
  });
  return { code, printed: printed.join('\n'), errors: errors.join('\n') };
}

it.each(['help', '--help', '-h'])('%s lists every command', async (word) => {
  const { code, printed, errors } = await run([word]);
  expect([code, errors]).toEqual([0, '']);
  expect(printed.split('\n')).toEqual([
    'usage:',
    '  grpc-idempotency sweep [--dry]',
    '      sweeps the floor',
    '  grpc-idempotency wash',
    '      washes the dishes',
    'grpc-idempotency <command> --help tells more of one, with an example; --version, which this is.',
    expect.stringContaining('DATABASE_URL'),
  ]);
});

it.each([
  [['sweeep'], 'unknown command "sweeep"; was sweep meant?'],
  [['wsah'], 'unknown command "wsah"; was wash meant?'],
  [['swee'], 'unknown command "swee"; was sweep meant?'],
  [['scrub'], 'unknown command "scrub"'],
  [['--dry'], 'unknown command "--dry"'],
  [[], 'which command?'],
])('the words %j are answered with the list and, last, the mistake', async (args, message) => {
  const { code, printed, errors } = await run(args);
  expect([code, printed]).toEqual([2, '']);
  expect(errors).toMatch(/^usage:\n {2}grpc-idempotency sweep/);
  expect(errors.split('\n').at(-1)).toBe(message);
});

it.each(['--version', '-v', 'version'])('%s prints the version of the package', async (word) => {
  const { code, printed, errors } = await run([word]);
  expect([code, printed, errors]).toEqual([0, manifest.version, '']);
});

it('a command gets the words after its name and the environment, and its code is the result', async () => {
  const seen: unknown[] = [];
  const { code, printed } = await run(['sweep', '--dry', 'kitchen'], async ({ args, environment, print }) => {
    seen.push(args, environment);
    print('swept');
    return EXIT.refused;
  });
  expect([code, printed]).toEqual([1, 'swept']);
  expect(seen).toEqual([['--dry', 'kitchen'], { HOME: '/home/shop' }]);
});

it.each(['--help', '-h'])('a command with %s tells its own usage and does not run', async (word) => {
  const { code, printed } = await run(['sweep', word], () => Promise.reject(new Error('it ran')));
  expect(code).toBe(0);
  expect(printed.split('\n')).toEqual([
    'usage:',
    '  grpc-idempotency sweep [--dry]',
    '      sweeps the floor',
    '      and under the table',
    'example:',
    '  npx grpc-idempotency sweep --dry',
    expect.stringContaining('DATABASE_URL'),
  ]);
});

const usageErrors: readonly [string, Command['run']][] = [
  ['parseArgs', async ({ args }) => (parseArgs({ args: [...args], options: {} }), EXIT.ok)],
  ['the command', async () => Promise.reject(new UsageError(`"--dri" is nothing to sweep with`))],
];

it.each(usageErrors)(
  'arguments that %s does not understand are a mistake, told last, after the usage',
  async (_, work) => {
    const { code, errors } = await run(['sweep', '--dri'], work);
    expect(code).toBe(2);
    expect(errors).toMatch(/^usage:\n +grpc-idempotency sweep[^]*\n.*--dri.*$/);
    expect(errors).not.toContain('    at ');
  },
);

it.each([
  [new MigrationRefused('it was edited'), /^it was edited$/],
  [new ConfigError([{ variable: 'X', expected: 'y' }]), /^settings that cannot be used:\n {2}X: expected y$/],
  [Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }), /^connect ECONNREFUSED$/],
  [Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }), /^ECONNREFUSED$/],
  [new TypeError('undefined is not a function'), /^TypeError: undefined is not a function\n +at /],
])('what went wrong is printed, with a stack only where it is our fault: %s', async (error, message) => {
  const { code, errors } = await run(['sweep'], () => Promise.reject(error));
  expect([code, errors]).toEqual([1, expect.stringMatching(message)]);
});

it('of an error of Prisma, prints what the database said', async () => {
  const message =
    '\nInvalid `prisma.$queryRawUnsafe()` invocation:\n\n\nRaw query failed. Code: `42501`. Message: `permission denied`';
  const { code, errors } = await run(['sweep'], () => {
    throw Object.assign(new Error(message), { code: 'P2010' });
  });
  expect([code, errors]).toEqual([1, 'Raw query failed. Code: `42501`. Message: `permission denied`']);
});
