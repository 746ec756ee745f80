import type { ClientBase } from 'pg';
import type { TableDescription } from './prisma-schema';

const COLUMNS = `
  SELECT concat_ws(' ', attname, format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN 'not null' ELSE 'null' END,
                   'default ' || pg_get_expr(adbin, adrelid)) AS line
  FROM pg_attribute
  LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped`;

const INDEXES = `
  SELECT indisprimary AS primary, indisunique AS unique, indexrelid::regclass::text AS name,
         substring(pg_get_indexdef(indexrelid) FROM '\\((.*)\\)') AS columns
  FROM pg_index
  WHERE indrelid = to_regclass($1) AND indpred IS NULL AND indexprs IS NULL`;

interface IndexRow {
  readonly primary: boolean;
  readonly unique: boolean;
  readonly name: string;
  readonly columns: string;
}

/** Describes a table as the database has it, in the words of `readPrismaSchema`. */
export async function describeTable(client: ClientBase, name: string): Promise<TableDescription> {
  const { rows: columns } = await client.query<{ line: string }>(COLUMNS, [name]);
  const { rows: indexes } = await client.query<IndexRow>(INDEXES, [name]);
  return {
    name,
    columns: columns.map(({ line }) => line).sort(),
    primaryKey: indexes.find(({ primary }) => primary)?.columns.split(', ') ?? [],
    indexes: indexes
      .filter(({ primary }) => !primary)
      .map(({ unique, name: index, columns: list }) => `${unique ? 'unique' : index} (${list})`)
      .sort(),
  };
}
