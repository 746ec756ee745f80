import { type Setting, SETTINGS } from './settings';

/** What is printed for `--help`: every variable, what it means and what holds without it. */
export function settingsHelp(): string {
  const rows = settings().map(({ variable, description, defaultValue }) => [
    variable,
    // The marks of code are for Markdown.
    `${description.replaceAll('`', '')} (default ${describeDefault(defaultValue)})`,
  ]);
  return ['Settings are environment variables:', '', ...alignedColumns(rows).map((line) => `  ${line}`)].join('\n');
}

/** The same as a table in Markdown, for the README. */
export function settingsMarkdown(): string {
  const rows = settings().map(({ variable, description, defaultValue }) => [
    `\`${variable}\``,
    defaultValue === undefined ? '–' : `\`${describeDefault(defaultValue)}\``,
    description,
  ]);
  const width = (column: number): number => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  const head = ['variable', 'default', 'meaning'];
  const rule = head.map((_, column) => '-'.repeat(width(column)));
  return [head, rule, ...rows]
    .map((row) => `| ${row.map((cell, column) => cell.padEnd(width(column))).join(' | ')} |`)
    .join('\n');
}

/** What a default is made of. */
type Printable = string | number | readonly string[] | undefined;

function settings(): readonly Setting<Printable>[] {
  return Object.values<Setting<Printable>>(SETTINGS);
}

function describeDefault(value: Printable): string {
  return value === undefined ? 'unset' : String(value);
}

function alignedColumns(rows: readonly (readonly string[])[]): readonly string[] {
  const width = Math.max(...rows.map(([first = '']) => first.length));
  return rows.map(([first = '', ...rest]) => [first.padEnd(width), ...rest].join('  '));
}
