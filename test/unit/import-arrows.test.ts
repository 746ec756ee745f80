import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const root = join(__dirname, '..', '..');

/** The arrows of design part 7 that an import may not turn back: who, whom, and what the lint says about it. */
const FORBIDDEN: readonly (readonly [importer: string, imported: string, reason: string])[] = [
  ['src/idempotency/example.ts', 'pg', 'The library serves any service'],
  ['src/idempotency/example.ts', 'pino', 'The library serves any service'],
  ['src/idempotency/example.ts', 'prom-client', 'The library serves any service'],
  ['src/idempotency/example.ts', '@prisma/client', 'The library serves any service'],
  ['src/idempotency/server/example.ts', 'src/gen/prisma/client.ts', 'The library serves any service'],
  ['src/idempotency/server/example.ts', 'src/gen/proto/payments/v1/payments.ts', 'The library serves any service'],
  ['src/idempotency/server/example.ts', 'src/config.ts', 'The library serves any service'],
  ['src/idempotency/store/example.ts', 'src/ops/metrics.ts', 'The library serves any service'],
  ['src/idempotency/store/example.ts', someFile('src/payments'), 'The library serves any service'],
  ['src/idempotency/store/example.ts', someFile('src/database'), 'The library serves any service'],
  ['src/idempotency/client/example.ts', someFile('src/idempotency/server'), 'A client runs without a server'],
  ['src/idempotency/client/example.ts', 'src/idempotency/store/store.ts', 'A client runs without a server'],
  ['src/idempotency/server/example.ts', someFile('src/idempotency/client'), 'A server runs without a client'],
  [
    'src/idempotency/server/example.ts',
    'src/idempotency/store/sql/claim.ts',
    'The server leans on what a store guarantees',
  ],
  ['src/idempotency/store/example.ts', someFile('src/idempotency/server'), 'A store keeps records'],
  ['src/idempotency/store/example.ts', someFile('src/idempotency/client'), 'A store keeps records'],
  ['src/payments/example.ts', 'src/idempotency/errors.ts', 'The library is used through idempotency/index'],
  ['src/ops/example.ts', 'src/idempotency/events.ts', 'The library is used through idempotency/index'],
  ['src/database/example.ts', 'src/idempotency/store/store.ts', 'The library is used through idempotency/index'],
  ['src/outbox/example.ts', 'src/idempotency/wire/metadata.ts', 'The library is used through idempotency/index'],
  ['src/app.ts', 'src/idempotency/policy.ts', 'The library is used through idempotency/index'],
  ['src/app.ts', 'src/main.ts', 'main starts the process'],
  ['src/ops/example.ts', 'src/main.ts', 'main starts the process'],
  ['src/payments/example.ts', 'src/app.ts', 'app composes the parts'],
  ['src/ops/example.ts', 'src/app.ts', 'app composes the parts'],
  ['src/database/example.ts', 'src/app.ts', 'app composes the parts'],
  ['src/config.ts', 'src/app.ts', 'app composes the parts'],
  ['src/payments/example.ts', 'src/config.ts', 'The environment is read once'],
  ['src/ops/example.ts', 'src/settings.ts', 'The environment is read once'],
  ['src/payments/example.ts', 'src/ops/metrics.ts', 'Payments do not know who watches them'],
  ['src/ops/example.ts', someFile('src/payments'), 'Operations serve any service'],
  ['src/outbox/example.ts', someFile('src/payments'), 'The outbox carries events of any kind'],
  ['src/database/example.ts', someFile('src/payments'), 'The database layer opens connections'],
  ['src/database/example.ts', 'src/ops/logger.ts', 'The database layer opens connections'],
  ['src/payments/example.ts', someFile('src/reconciliation'), 'Reconciliation reads the books of others'],
  ['src/payments/example.ts', 'test/unit/import-arrows.test.ts', 'What is shipped does not lean'],
];

const ALLOWED: readonly (readonly [importer: string, imported: string])[] = [
  ['src/main.ts', 'src/app.ts'],
  ['src/main.ts', 'src/config.ts'],
  ['src/app.ts', 'src/config.ts'],
  ['src/app.ts', 'src/ops/metrics.ts'],
  ['src/app.ts', someFile('src/payments')],
  ['src/app.ts', someFile('src/database')],
  ['src/app.ts', 'src/idempotency/index.ts'],
  ['src/config.ts', 'src/settings.ts'],
  ['src/ops/example.ts', 'src/idempotency/index.ts'],
  ['src/payments/example.ts', 'src/idempotency/index.ts'],
  ['src/payments/example.ts', 'src/gen/prisma/client.ts'],
  ['src/database/example.ts', '@prisma/adapter-pg'],
  ['src/database/example.ts', 'pg'],
  ['src/idempotency/index.ts', 'src/idempotency/store/sql/claim.ts'],
  ['src/idempotency/server/example.ts', 'src/idempotency/store/store.ts'],
  ['src/idempotency/server/example.ts', 'src/idempotency/wire/metadata.ts'],
  ['src/idempotency/client/example.ts', 'src/idempotency/policy.ts'],
  ['src/idempotency/example.ts', '@grpc/grpc-js'],
  ['src/idempotency/example.ts', '@bufbuild/protobuf'],
  ['src/idempotency/example.ts', 'node:crypto'],
  ['src/idempotency/example.ts', 'src/gen/proto/google/rpc/status.ts'],
  ['src/idempotency/example.ts', 'src/gen/proto/idempotency/v1/policy.ts'],
];

const METADATA_NAMES = [
  'request-id',
  'idempotent-replayed',
  'idempotency-expires-at',
  'grpc-retry-pushback-ms',
  'grpc-previous-rpc-attempts',
  'x-envoy-attempt-count',
  'grpc-status-details-bin',
];

/** What only one file may spell: where a text stands, the text, and what the lint says, if anything. */
const SPELLINGS: readonly (readonly [filePath: string, text: string, reason?: string])[] = [
  ...METADATA_NAMES.map((name) => ['src/ops/example.ts', `export const name = '${name}';`, 'spells metadata'] as const),
  ['src/idempotency/server/example.ts', 'export const name = `Request-Id`;', 'spells metadata'],
  ['src/idempotency/store/sql/claim.ts', "export const name = 'request-id';", 'spells metadata'],
  ['src/idempotency/wire/metadata.ts', "export const name = 'request-id';"],
  ['src/ops/example.ts', "export const text = 'retry refused: no request-id';"],
  ['src/idempotency/store/example.ts', 'export const q = `SELECT 1 FROM idempotency_record`;', 'spell record SQL'],
  ['src/database/example.ts', "export const day = 'idempotency_record_20261130';", 'spell record SQL'],
  ['src/idempotency/wire/metadata.ts', "export const table = 'idempotency_record';", 'spell record SQL'],
  ['src/idempotency/store/sql/claim.ts', 'export const q = `SELECT 1 FROM idempotency_record`;'],
  ['src/ops/example.ts', "export const metric = 'idempotency_records';"],
];

/** The first TypeScript file of a folder; which one does not matter to an arrow. */
function someFile(folder: string): string {
  const [file] = readdirSync(join(root, folder)).filter((name) => name.endsWith('.ts'));
  if (file === undefined) throw new Error(`${folder} holds no file to import`);
  return `${folder}/${file}`;
}

function specifier(importer: string, imported: string): string {
  if (!/^(src|test)\//.test(imported)) return imported;
  const path = relative(dirname(importer), imported).replace(/\.ts$/, '');
  return path.startsWith('.') ? path : `./${path}`;
}

/** Lints all texts in one process and returns the messages of each. */
function lint(cases: readonly { readonly filePath: string; readonly text: string }[]): string[] {
  const script = join(root, 'test', 'support', 'lint-texts.mjs');
  const output = execFileSync(process.execPath, [script], {
    cwd: root,
    input: JSON.stringify(cases),
    encoding: 'utf8',
  });
  return (JSON.parse(output) as string[][]).map((messages) => messages.join('\n'));
}

/** The same import once for its values and once for a type: an arrow holds for both. */
const IMPORTS = [...FORBIDDEN, ...ALLOWED].map(([importer, imported]) => ({
  filePath: importer,
  value: `import '${specifier(importer, imported)}';`,
  type: `import type { Anything } from '${specifier(importer, imported)}';\nexport type Same = Anything;`,
}));

let asValue: string[];
let asType: string[];
let spellings: string[];

beforeAll(() => {
  const messages = lint([
    ...IMPORTS.map(({ filePath, value }) => ({ filePath, text: value })),
    ...IMPORTS.map(({ filePath, type }) => ({ filePath, text: type })),
    ...SPELLINGS.map(([filePath, text]) => ({ filePath, text })),
  ]);
  asValue = messages.slice(0, IMPORTS.length);
  asType = messages.slice(IMPORTS.length, 2 * IMPORTS.length);
  spellings = messages.slice(2 * IMPORTS.length);
}, 60_000);

describe.each(FORBIDDEN.map((arrow, index) => [...arrow, index] as const))(
  '%s',
  (_importer, imported, reason, index) => {
    test(`may not import ${imported}`, () => {
      expect(asValue[index]).toContain(reason);
      expect(asType[index]).toContain(reason);
    });
  },
);

describe.each(ALLOWED.map((arrow, index) => [...arrow, FORBIDDEN.length + index] as const))(
  '%s',
  (_importer, imported, index) => {
    test(`may import ${imported}`, () => {
      expect(asValue[index]).toBe('');
      expect(asType[index]).toBe('');
    });
  },
);

describe.each(
  SPELLINGS.map((spelling, index) => ({ filePath: spelling[0], text: spelling[1], reason: spelling[2], index })),
)('$filePath', ({ text, reason, index }) => {
  if (reason === undefined) test(`may say ${text}`, () => expect(spellings[index]).toBe(''));
  else test(`may not say ${text}`, () => expect(spellings[index]).toContain(reason));
});
