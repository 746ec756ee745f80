import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(__dirname, '..', '..');
const DOCUMENT = readFileSync(join(ROOT, 'docs', 'protocol.md'), 'utf8');
/** A test file, and words of the names of tests in it. */
const REFERENCE = /(?<file>(?:unit|store|e2e)\/[a-z0-9-]+)(?<names>(?: "[^"]+")*)/g;

interface Rule {
  readonly section: string;
  readonly rule: string;
  readonly tests: string;
}

/** The rows of the tables, without their heads. */
function rulesOf(document: string): readonly Rule[] {
  let section = '';
  return document.split('\n').flatMap((line) => {
    const heading = /^## (\S+)/.exec(line);
    section = heading?.[1] ?? section;
    const [rule, tests] = line.startsWith('| ') ? line.slice(2, -2).split(' | ') : [];
    return rule === undefined || tests === undefined || rule === 'rule' || rule.startsWith('---')
      ? []
      : [{ section, rule, tests }];
  });
}

const rules = rulesOf(DOCUMENT);

describe('the rules of docs/protocol.md', () => {
  it('are of every part from 4.1 to 4.12', () => {
    const sections = Array.from({ length: 12 }, (_, index) => `4.${index + 1}`);
    expect([...new Set(rules.map(({ section }) => section))]).toEqual(sections);
    expect(rules.length).toBeGreaterThan(70);
  });

  it.each(rules)('$section: $rule: name tests that are there', ({ tests }) => {
    const references = [...tests.matchAll(REFERENCE)];
    expect(tests.replace(REFERENCE, '').replaceAll(', ', '')).toBe('');
    expect(references.length).toBeGreaterThan(0);
    for (const { groups } of references) {
      const file = join(ROOT, 'test', `${groups?.['file']}.test.ts`);
      expect([file, existsSync(file)]).toEqual([file, true]);
      const source = readFileSync(file, 'utf8');
      const names = [...(groups?.['names'] ?? '').matchAll(/"([^"]+)"/g)].map(([, name]) => name ?? '');
      expect(names.filter((name) => !source.includes(name))).toEqual([]);
    }
  });
});
