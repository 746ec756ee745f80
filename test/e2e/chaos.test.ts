import { runProgram } from '../support/run-program';

// Ten seconds of faults; then whatever was left half done is finished.
jest.setTimeout(180_000);

it('everything breaks at once, and the books agree (design 8.3): longer with `npm run chaos`', async () => {
  const words = ['--seed', '20', '--seconds', '10', '--processes', '2', '--callers', '6'];
  const chaos = runProgram(['--import', 'tsx', 'test/chaos/main.ts', ...words]);
  const code = await chaos.exited;
  const lines = chaos.output().split('\n');
  expect(lines.filter((line) => line.startsWith('wrong: '))).toEqual([]);
  expect(lines).toContain('the books agree');
  expect(code).toBe(0);
  const [, payments, retries] = /(\d+) payments, .* (\d+) calls were made again/.exec(chaos.output()) ?? [];
  expect(Number(payments)).toBeGreaterThan(6);
  expect(Number(retries)).toBeGreaterThan(0);
});
