/** One thing in a statement that keeps something from happening, and the statement without it. */
export interface SqlCondition {
  /** `WHERE`, `ON`, `SKIP LOCKED`, `FOR UPDATE`, `ON CONFLICT`, `ORDER BY`, `LIMIT`, or `set_config`. */
  readonly kind: string;
  /** The condition as it stands there, on one line. */
  readonly text: string;
  /** The whole statement without it. It keeps all parameters, so that it can be prepared as before. */
  readonly without: string;
}

interface Token {
  readonly text: string;
  readonly start: number;
  readonly end: number;
  /** How many parentheses are open around it. */
  readonly depth: number;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * Finds every condition of a statement: each operand of each AND and OR in each WHERE and join, at any depth; and what
 * keeps statements from waiting, conflicting or taking too much. So no condition can be added and left without a test.
 *
 * @throws for what it does not understand: a BETWEEN, whose AND is none
 */
export function findConditions(sql: string): readonly SqlCondition[] {
  const tokens = tokenize(sql);
  const found = tokens.flatMap((token, index) => conditionsAt(sql, tokens, token, index));
  return found.map(({ kind, span, replacement }) => ({
    ...{ kind, text: oneLine(sql.slice(span.start, span.end)) },
    without: sql.slice(0, span.start) + replacement + sql.slice(span.end),
  }));
}

interface Finding {
  readonly kind: string;
  readonly span: Span;
  readonly replacement: string;
}

function conditionsAt(sql: string, tokens: readonly Token[], token: Token, index: number): readonly Finding[] {
  const next = tokens[index + 1];
  switch (token.text.toUpperCase()) {
    case 'BETWEEN':
      throw new Error(`BETWEEN is not understood here, write two comparisons: ${oneLine(sql)}`);
    case 'WHERE':
      return operands(sql, tokens, spanTo(sql, tokens, index, CLAUSE_ENDS)).map((found) => ({
        ...found,
        kind: 'WHERE',
      }));
    case 'ON': {
      if (next?.text.toUpperCase() === 'CONFLICT') {
        return [{ kind: 'ON CONFLICT', span: spanTo(sql, tokens, index, CLAUSE_ENDS, 0), replacement: '' }];
      }
      const span = spanTo(sql, tokens, index, JOIN_ENDS);
      if (sql.slice(span.start, span.end).trim() === 'true') return [];
      return operands(sql, tokens, span).map((found) => ({ ...found, kind: 'ON' }));
    }
    case 'SKIP':
      return [{ kind: 'SKIP LOCKED', span: { start: token.start, end: next?.end ?? token.end }, replacement: '' }];
    case 'FOR':
      if (next?.text.toUpperCase() !== 'UPDATE') return [];
      return [{ kind: 'FOR UPDATE', span: spanTo(sql, tokens, index, CLAUSE_ENDS, 0), replacement: '' }];
    case 'ORDER': {
      // The order of rows that are only told decides nothing.
      const decides = /^\s*(WITH|INSERT|UPDATE|DELETE)\b/i.test(sql);
      return decides ? [{ kind: 'ORDER BY', span: spanTo(sql, tokens, index, CLAUSE_ENDS, 0), replacement: '' }] : [];
    }
    case 'LIMIT': {
      const span = spanTo(sql, tokens, index, CLAUSE_ENDS);
      // Of one row by its key a constant tells the planner only, whatever its number; so it goes as a whole.
      if (/^\d+$/.test(sql.slice(span.start, span.end).trim())) {
        return [{ kind: 'LIMIT', span: { ...span, start: token.start }, replacement: '' }];
      }
      const replacement = `greatest(${sql.slice(span.start, span.end)}, 1000000)`;
      return [{ kind: 'LIMIT', span, replacement }];
    }
    case 'SET_CONFIG': {
      const span = { start: token.start, end: closingOf(tokens, index + 1).end };
      return [{ kind: 'set_config', span, replacement: `concat${sql.slice(token.end, span.end)}` }];
    }
    default:
      return [];
  }
}

/** What ends a WHERE, at its own depth. */
const CLAUSE_ENDS = new Set(['RETURNING', 'ORDER', 'GROUP', 'LIMIT', 'FOR', 'ON', 'UNION', 'HAVING', ';']);
const JOIN_ENDS = new Set([...CLAUSE_ENDS, 'WHERE', 'JOIN', 'LEFT', 'CROSS', ',']);

/** From a keyword, or from behind it (`skip` 1), to where its clause ends. */
function spanTo(
  sql: string,
  tokens: readonly Token[],
  keyword: number,
  ends: ReadonlySet<string>,
  skip: 0 | 1 = 1,
): Span {
  const { depth, start, end } = tokens[keyword] as Token;
  const last = tokens.find(
    (token, index) => index > keyword && (token.depth < depth || (token.depth === depth && ends.has(upper(token)))),
  );
  const until = sql.slice(0, last?.start ?? sql.length).trimEnd().length;
  return { start: skip === 0 ? start : end + 1, end: until };
}

/** The operands of an expression, and theirs. One that is removed leaves the others to decide. */
function operands(sql: string, tokens: readonly Token[], span: Span): readonly Omit<Finding, 'kind'>[] {
  const inner = tokens.filter(({ start, end }) => start >= span.start && end <= span.end);
  const depth = Math.min(...inner.map((token) => token.depth));
  const isOr = inner.some((token) => token.depth === depth && upper(token) === 'OR');
  const parts = split(inner, depth, isOr ? 'OR' : 'AND');
  return parts.flatMap((part) => {
    const text = sql.slice(part.start, part.end);
    const replacement = isOr ? `((${text}) AND false)` : `((${text}) OR true)`;
    return [{ span: part, replacement }, ...operandsWithin(sql, tokens, part)];
  });
}

/** The operands of `(…)` and `NOT (…)`; nothing of a comparison or a subquery, whose WHERE is found by itself. */
function operandsWithin(sql: string, tokens: readonly Token[], part: Span): readonly Omit<Finding, 'kind'>[] {
  const inner = tokens.filter(({ start, end }) => start >= part.start && end <= part.end);
  const [first, ...rest] = inner;
  const opening = first !== undefined && upper(first) === 'NOT' ? rest[0] : first;
  const last = inner.at(-1);
  if (opening?.text !== '(' || last?.text !== ')' || closingOf(tokens, tokens.indexOf(opening)) !== last) return [];
  const span = { start: opening.end, end: last.start };
  const within = inner.filter(({ start, end }) => start >= span.start && end <= span.end);
  if (within.some((token) => upper(token) === 'SELECT' && token.depth === opening.depth + 1)) return [];
  const depth = opening.depth + 1;
  if (!within.some((token) => token.depth === depth && ['AND', 'OR'].includes(upper(token)))) return [];
  return operands(sql, tokens, span);
}

function split(tokens: readonly Token[], depth: number, operator: string): readonly Span[] {
  const parts: Token[][] = [[]];
  for (const token of tokens) {
    if (token.depth === depth && upper(token) === operator) parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return parts.map((part) => ({ start: part[0]?.start ?? 0, end: part.at(-1)?.end ?? 0 }));
}

function closingOf(tokens: readonly Token[], opening: number): Token {
  const { depth } = tokens[opening] as Token;
  const closing = tokens.find((token, index) => index > opening && token.depth === depth && token.text === ')');
  if (closing === undefined) throw new Error('a parenthesis is not closed');
  return closing;
}

/** A parenthesis has the depth of what is around it. */
function tokenize(sql: string): readonly Token[] {
  let depth = 0;
  return [...sql.matchAll(/'(?:[^']|'')*'|"[^"]*"|\$?[\w.]+|::|[<>=!~]+|\S/g)].map(({ 0: text, index }) => {
    if (text === ')') depth -= 1;
    const token = { text, start: index, end: index + text.length, depth };
    if (text === '(') depth += 1;
    return token;
  });
}

function upper(token: Token): string {
  return token.text.toUpperCase();
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
