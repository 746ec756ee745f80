// Lints texts as if they were the contents of files of this package. Reads [{ filePath, text }] as JSON from standard input
// and writes, for each, the messages that ESLint has for it. A process of its own, since jest can't load an ES module
// configuration. Rules that need types are off: the texts belong to no program.
import { text } from 'node:stream/consumers';
import { ESLint } from 'eslint';
import tseslint from 'typescript-eslint';

const eslint = new ESLint({ overrideConfig: [tseslint.configs.disableTypeChecked] });
const cases = JSON.parse(await text(process.stdin));
const messages = [];
for (const { filePath, text: source } of cases) {
  const results = await eslint.lintText(source, { filePath });
  messages.push(results.flatMap((result) => result.messages.map(({ ruleId, message }) => `${ruleId}: ${message}`)));
}
console.log(JSON.stringify(messages));
