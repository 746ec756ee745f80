import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SETTINGS } from '../../src/settings';
import { settingsHelp, settingsMarkdown } from '../../src/settings-table';

const VARIABLES = Object.values(SETTINGS).map(({ variable }) => variable);

test('the README has the table of settings as the code has it; else run: npx tsx scripts/settings-table.mjs', () => {
  const readme = readFileSync(join(__dirname, '..', '..', 'README.md'), 'utf8');
  expect(/<!-- settings -->\n\n([^]*)\n\n<!-- \/settings -->/.exec(readme)?.[1]).toBe(settingsMarkdown());
});

test('the table has one line for each variable, all of one width', () => {
  const [head, rule, ...rows] = settingsMarkdown().split('\n');
  expect(rows.map((row) => /^\| `(\w+)` +\|/.exec(row)?.[1])).toEqual(VARIABLES);
  expect(rows[1]).toMatch(/^\| `GRPC_PORT` +\| `50051` +\| port that serves gRPC; 0 takes any free one +\|$/);
  expect(new Set([head, rule, ...rows].map((line) => line?.length)).size).toBe(1);
});

test('the help has one line for each variable, with its default', () => {
  const lines = settingsHelp().split('\n').slice(2);
  expect(lines.map((line) => /^ {2}(\w+) /.exec(line)?.[1])).toEqual(VARIABLES);
  expect(lines).toContainEqual(expect.stringMatching(/^ {2}GRPC_PORT +port that serves gRPC; .* \(default 50051\)$/));
  expect(lines).toContainEqual(expect.stringMatching(/^ {2}DATABASE_URL .* \(default unset\)$/));
});
