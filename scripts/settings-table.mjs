// Writes the table of settings into the README, between its two marks: `npx tsx scripts/settings-table.mjs`. A test fails
// while the two differ.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { settingsMarkdown } from '../src/settings-table.ts';

const path = join(dirname(dirname(fileURLToPath(import.meta.url))), 'README.md');
const readme = readFileSync(path, 'utf8');
const section = /(<!-- settings -->\n)[^]*(\n<!-- \/settings -->)/;
if (!section.test(readme)) throw new Error('README.md has no <!-- settings --> … <!-- /settings -->');
writeFileSync(
  path,
  readme.replace(section, (_, start, end) => `${start}\n${settingsMarkdown()}\n${end}`),
);
