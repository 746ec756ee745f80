/** A table as lines of text: equal tables have equal lines. */
export interface TableDescription {
  readonly name: string;
  readonly columns: readonly string[];
  /** Of the primary key, in order. */
  readonly primaryKey: readonly string[];
  /** Those that Prisma can say: neither partial nor of expressions. */
  readonly indexes: readonly string[];
}

/** What a type of Prisma is in Postgres, with its `@db.` attribute where it has one. */
const TYPES: Readonly<Record<string, string>> = {
  String: 'text',
  'String @db.Uuid': 'uuid',
  'String @db.Char(3)': 'character(3)',
  'String @db.Date': 'date',
  Int: 'integer',
  'Int @db.SmallInt': 'smallint',
  BigInt: 'bigint',
  Boolean: 'boolean',
  Bytes: 'bytea',
  Json: 'jsonb',
  'DateTime @db.Date': 'date',
  'DateTime @db.Timestamptz(6)': 'timestamp with time zone',
};

/**
 * Reads the models of a schema.prisma, as far as this package uses its language; what it can't read is an error, never
 * skipped. The engine of Prisma that would compare has to be downloaded.
 */
export function readPrismaSchema(schema: string): readonly TableDescription[] {
  const models = [...schema.matchAll(/^model (\w+) \{\n([^]*?)^\}/gm)];
  return models.map(([, name = '', body = '']) => readModel(name, body));
}

function readModel(model: string, body: string): TableDescription {
  const lines = body
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('//'));
  const fields = lines.filter((line) => !line.startsWith('@@'));
  const attributes = lines.filter((line) => line.startsWith('@@'));
  const columnOf = (field: string): string => {
    const line = fields.find((candidate) => candidate.startsWith(`${field} `));
    if (line === undefined) throw new Error(`${model} has no field ${field}`);
    return columnName(line);
  };
  let name = model;
  let primaryKey = fields.filter((line) => / @id\b/.test(line)).map(columnName);
  const indexes = fields.filter((line) => / @unique\b/.test(line)).map((line) => `unique (${columnName(line)})`);
  for (const attribute of attributes) {
    const [, kind = '', content = ''] = /^@@(\w+)\((.*)\)$/.exec(attribute) ?? [];
    if (kind === 'map') name = content.replaceAll('"', '');
    else if (kind === 'id') primaryKey = columnsOf(content, columnOf);
    else if (kind === 'unique') indexes.push(`unique (${columnsOf(content, columnOf).join(', ')})`);
    else if (kind === 'index') indexes.push(`${mapOf(content)} (${columnsOf(content, columnOf).join(', ')})`);
    else throw new Error(`${model}: can't read ${attribute}`);
  }
  return { name, columns: fields.map(describeColumn).sort(), primaryKey, indexes: indexes.sort() };
}

function columnName(line: string): string {
  return / @map\("(\w+)"\)/.exec(line)?.[1] ?? line.split(/\s+/)[0] ?? '';
}

function describeColumn(line: string): string {
  const [, type = '', optional = ''] = /^\w+\s+(\w+)(\?)?(?= |$)/.exec(line) ?? [];
  const native = / (@db\.\w+(?:\(\d+\))?)/.exec(line)?.[1];
  const postgresType = TYPES[native === undefined ? type : `${type} ${native}`];
  if (postgresType === undefined) throw new Error(`can't read the type in: ${line}`);
  const written = / @default\((.*?)\)(?= |$)/.exec(line)?.[1];
  // What the database makes by itself is written as SQL; so Prisma sends no value of its own.
  const value = written?.replace(/^dbgenerated\("(.*)"\)$/, '$1').replace(/^"(.*)"$/, `'$1'::${postgresType}`);
  return [
    columnName(line),
    postgresType,
    optional === '?' ? 'null' : 'not null',
    ...(value ? ['default', value] : []),
  ].join(' ');
}

function columnsOf(content: string, columnOf: (field: string) => string): string[] {
  const list = /\[(.*?)\]/.exec(content)?.[1] ?? '';
  return list.split(/,\s*/).map((entry) => {
    const [, field = '', sort] = /^(\w+)(?:\(sort: (Asc|Desc)\))?$/.exec(entry) ?? [];
    return sort === 'Desc' ? `${columnOf(field)} DESC` : columnOf(field);
  });
}

/** Indexes have names of ours, since another tool would give others. */
function mapOf(content: string): string {
  const name = /map: "(\w+)"/.exec(content)?.[1];
  if (name === undefined) throw new Error(`an index needs its name, map: "…", in: ${content}`);
  return name;
}
