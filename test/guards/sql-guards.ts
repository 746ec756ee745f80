import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import ts from 'typescript';
import type { FoundGuards, Guard } from './guard';
import { findConditions } from './sql-conditions';

/** Where every statement on the records is. */
const SQL_FOLDER = 'src/idempotency/store/sql';
/** Parts of statements, found in those. */
const PARTS = new Set(['fragments.ts', 'fence.ts']);
/** Stands for the day of statements that are made for one. */
const ANY_DAY = '2001-02-03';
const ANY_TABLE = 'idempotency_record_d20010203';

/**
 * A guard for each condition of each statement, found in the statements themselves.
 *
 * @param root of the package
 * @param testsOf the test files of a condition of a statement; undefined where nobody has said,
 *   which is a fault
 */
export async function sqlGuards(
  root: string,
  testsOf: (statement: string, condition: string) => readonly string[] | undefined,
): Promise<FoundGuards> {
  const guards: Guard[] = [];
  const unassigned = new Set<string>();
  for (const name of (await readdir(join(root, SQL_FOLDER))).sort()) {
    if (PARTS.has(name)) continue;
    const file = `${SQL_FOLDER}/${name}`;
    for (const { statement, text } of await statementsOf(join(root, file))) {
      const seen = new Map<string, number>();
      for (const condition of findConditions(text)) {
        const label = `${name} ${statement}: ${labelOf(condition)}`;
        const tests = testsOf(statement, labelOf(condition));
        if (tests === undefined) unassigned.add(`${name} ${statement}`);
        const times = (seen.get(label) ?? 0) + 1;
        seen.set(label, times);
        guards.push({
          name: times === 1 ? label : `${label} (${String(times)})`,
          file,
          statement: condition.without,
          without: (source) => withStatement(source, statement, condition.without),
          tests: tests ?? [],
        });
      }
    }
  }
  const faults = [...unassigned].map((statement) => `no test files in tests-of-statements.ts for ${statement}`);
  return { guards, faults };
}

function labelOf({ kind, text }: { readonly kind: string; readonly text: string }): string {
  return text.toUpperCase().startsWith(kind.toUpperCase()) ? text : `${kind} ${text}`;
}

/** What a module exports that is a statement, or makes one for a day. */
async function statementsOf(path: string): Promise<readonly { readonly statement: string; readonly text: string }[]> {
  const exported = (await import(path)) as Record<string, unknown>;
  return Object.entries(exported).flatMap(([statement, value]) => {
    if (statement === 'default') return [];
    const text = typeof value === 'function' ? (value as (day: string) => unknown)(ANY_DAY) : value;
    return typeof text === 'string' ? [{ statement, text }] : [];
  });
}

/** The source of a module with another text for one of its statements. */
function withStatement(source: string, statement: string, text: string): string {
  const file = ts.createSourceFile('statements.ts', source, ts.ScriptTarget.ES2022, true);
  const literal = JSON.stringify(text);
  for (const node of file.statements) {
    if (ts.isFunctionDeclaration(node) && node.name?.text === statement && node.body !== undefined) {
      const body = `{ return ${literal}.replaceAll('${ANY_TABLE}', tableOf(day)).replaceAll('${ANY_DAY}', day); }`;
      return source.slice(0, node.body.getStart()) + body + source.slice(node.body.end);
    }
    if (!ts.isVariableStatement(node)) continue;
    for (const { name, initializer } of node.declarationList.declarations) {
      if (!ts.isIdentifier(name) || name.text !== statement || initializer === undefined) continue;
      return source.slice(0, initializer.getStart()) + literal + source.slice(initializer.end);
    }
  }
  throw new Error(`no exported constant or function ${statement}`);
}
