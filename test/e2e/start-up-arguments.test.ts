import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SETTINGS } from '../../src/settings';
import { runMain } from '../support/main-process';
import { makeTemporaryDirectory } from '../support/postgres';
import { ROOT, runProgram } from '../support/run-program';

const MAIN = ['--import', 'tsx', join(ROOT, 'src', 'main.ts')];

test('--help prints every setting and starts nothing, although none of them could be used', async () => {
  const help = runProgram([...MAIN, '--help'], { GRPC_PORT: 'fifty' });
  expect(await help.exited).toBe(0);
  for (const { variable } of Object.values(SETTINGS)) expect(help.output()).toContain(`  ${variable} `);
});

test.each([['--port=7'], ['start'], ['--help me']])('%s is refused: the service takes no arguments', async (args) => {
  const run = runProgram([...MAIN, ...args.split(' ')]);
  expect(await run.exited).toBe(2);
  expect(run.output()).toBe('The service takes no arguments; --help prints the environment variables that it reads.\n');
});

test('an address of another machine ends the start, also where the port could be any', async () => {
  const directory = await makeTemporaryDirectory();
  const tokensFile = join(directory, 'accounts.json');
  await writeFile(tokensFile, JSON.stringify({ tokens: { 'a-token-that-is-long-enough': 'shop-1' } }), { mode: 0o600 });
  const identity = { AUTH_MODE: 'tokens', AUTH_TOKENS_FILE: tokensFile, DATA_DIRECTORY: join(directory, 'data') };

  // Of a block for documentation (RFC 5737), and of a name that nobody can have (RFC 6761).
  const run = runMain({ ...identity, GRPC_HOST: '192.0.2.7', OPS_HOST: 'ops.invalid' });

  expect(await run.exited).toBe(1);
  expect(run.output().trim().split('\n')).toEqual([
    'The address 192.0.2.7 is none of this machine (EADDRNOTAVAIL). Set GRPC_HOST to one that is.',
    expect.stringMatching(/^The address ops\.invalid is none of this machine \(\w+\)\. Set OPS_HOST to one that is\.$/),
  ]);
  await rm(directory, { recursive: true });
});

test('a file of tokens that cannot be used ends the start: all of its faults, no token, no database', async () => {
  const directory = await makeTemporaryDirectory();
  const tokensFile = join(directory, 'accounts.json');
  await writeFile(tokensFile, JSON.stringify({ tokens: { s3cret: 'shop-1', 's3cret-but-long-enough': '' } }));

  const run = runMain({ AUTH_MODE: 'tokens', AUTH_TOKENS_FILE: tokensFile, DATA_DIRECTORY: join(directory, 'data') });

  expect(await run.exited).toBe(1);
  expect(run.output().trim().split('\n')).toEqual([
    `the file of accounts ${tokensFile} can't be used:`,
    '  tokens: number 2 has no name of an account, which is a text without spaces around it',
    '  tokens: number 1 is no bearer token of 16 characters or more (RFC 6750)',
  ]);
  expect(await readdir(directory)).toEqual(['accounts.json']);
  await rm(directory, { recursive: true });
});
