import eslint from '@eslint/js';
import { createNodeResolver, importX } from 'eslint-plugin-import-x';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

/** The arrows between the folders of src/. They never turn back; a type import counts like any other. */
const ARROWS = [
  {
    target: './src/idempotency',
    from: './',
    except: [
      './src/idempotency',
      './src/gen/proto/google',
      './src/gen/proto/idempotency',
      './node_modules/@grpc/grpc-js',
      './node_modules/@bufbuild/protobuf',
    ],
    message: 'The library serves any service: it knows node:, grpc-js and protobuf, and takes the rest as a parameter.',
  },
  {
    target: './src/idempotency/client',
    from: ['./src/idempotency/server', './src/idempotency/store'],
    message: 'A client runs without a server and its database; what both need belongs beside index.ts or in wire/.',
  },
  {
    target: './src/idempotency/server',
    from: './src/idempotency/client',
    message: 'A server runs without a client; what both need belongs beside index.ts or in wire/.',
  },
  {
    target: './src/idempotency/server',
    from: './src/idempotency/store',
    except: ['./store.ts', './outcomes.ts'],
    message: 'The server leans on what a store guarantees, which store/store.ts says, not on how one does it.',
  },
  {
    target: './src/idempotency/intents',
    from: ['./src/idempotency/client', './src/idempotency/server', './src/idempotency/store'],
    except: ['./database.ts', './database-error.ts'],
    message: 'A caller keeps intents without a server and its records.',
  },
  {
    target: './src/idempotency/store',
    from: ['./src/idempotency/server', './src/idempotency/client'],
    message: 'A store keeps records for whoever asks; it knows nothing of calls.',
  },
  {
    target: ['./src/!(idempotency|gen)/**', './src/*.ts'],
    from: './src/idempotency',
    except: ['./index.ts'],
    message: 'The library is used through idempotency/index, which is its promise; its insides change freely.',
  },
  {
    target: ['./src/!(idempotency)/**', './src/!(main).ts'],
    from: './src/main.ts',
    message: 'main starts the process and is imported by nobody.',
  },
  {
    target: ['./src/!(idempotency|cli)/**', './src/!(main|app).ts'],
    from: './src/app.ts',
    message: 'app composes the parts: they are handed what they need and do not reach back.',
  },
  {
    target: './src/!(idempotency|cli)/**',
    from: ['./src/config.ts', './src/settings.ts'],
    message: 'The environment is read once, at the top; parts get their values as options.',
  },
  {
    target: './src/payments',
    from: './src/ops',
    message: 'Payments do not know who watches them; app passes a callback.',
  },
  {
    target: './src/payments',
    from: './src/card-network',
    message: 'Payments and the card network are two companies: they meet on the wire.',
  },
  {
    target: './src/card-network',
    from: ['./src/payments', './src/outbox', './src/receipts', './src/ops'],
    message: 'The card network is a service of its own and knows none of ours.',
  },
  {
    target: './src/ops',
    from: ['./src/payments', './src/outbox'],
    message: 'Operations serve any service; what they show of this one is passed in by app.',
  },
  {
    target: './src/outbox',
    from: ['./src/payments', './src/ops'],
    message: 'The outbox carries events of any kind and does not know who adds or watches them.',
  },
  {
    target: './src/database',
    from: ['./src/payments', './src/outbox', './src/ops'],
    message: 'The database layer opens connections and applies migrations; it does not know who uses them.',
  },
  {
    target: ['./src/payments', './src/outbox', './src/ops', './src/card-network', './src/receipts', './src/database'],
    from: './src/reconciliation',
    message: 'Reconciliation reads the books of others; none of them knows that it is compared.',
  },
  {
    target: './src',
    from: ['./test', './examples', './scripts'],
    message: 'What is shipped does not lean on what is not; test knobs come from what a test composes.',
  },
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

/** Literals and templates that match, whatever they are used for. */
const spelling = (pattern, message) => [
  { selector: `Literal[value=/${pattern}/i]`, message },
  { selector: `TemplateElement[value.raw=/${pattern}/i]`, message },
];

const METADATA_SPELLING = spelling(
  `^(${METADATA_NAMES.join('|')})$`,
  'Only src/idempotency/wire/metadata.ts spells metadata names, so that both sides speak the same ones.',
);

/** `idempotency_records` is a metric. */
const RECORD_SPELLING = spelling(
  'idempotency_record(?!s)',
  'Only src/idempotency/store/sql/ and the migrations spell record SQL, so that every guard is found in one place.',
);

/** The files that hold the SQL of records. */
const RECORD_SQL_FILES = ['src/idempotency/store/sql/*.ts'];

export default defineConfig(
  globalIgnores(['src/gen/', 'dist/', 'coverage/', '.data/']),
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  eslint.configs.recommended,
  {
    files: ['**/*.{js,mjs}'],
    languageOptions: { globals: { console: 'readonly', process: 'readonly', Buffer: 'readonly' } },
  },
  {
    files: ['**/*.js'],
    languageOptions: { sourceType: 'commonjs', globals: { __dirname: 'readonly' } },
  },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // The preset brings no-floating-promises, no-misused-promises and no-explicit-any: a promise nobody waits for is
      // a claim nobody completes, or a rejection that ends the process.
      '@typescript-eslint/return-await': ['error', 'error-handling-correctness-only'],
      // An async function without await is how a handler promises to answer.
      '@typescript-eslint/require-await': 'off',
      // What a factory returns closes over its state: its methods may be taken apart.
      '@typescript-eslint/unbound-method': 'off',
      // Outcomes are tagged unions: a new one must be decided on everywhere, so `default` settles nothing.
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: false }],
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      'max-lines': ['error', 300],
    },
  },
  {
    files: ['src/**/*.ts'],
    plugins: { 'import-x': importX },
    settings: { 'import-x/resolver-next': [createNodeResolver({ extensions: ['.ts', '.js', '.json'] })] },
    rules: {
      'import-x/no-restricted-paths': ['error', { basePath: import.meta.dirname, zones: ARROWS }],
      'no-restricted-syntax': ['error', ...METADATA_SPELLING, ...RECORD_SPELLING],
    },
  },
  {
    files: ['src/idempotency/wire/metadata.ts'],
    rules: { 'no-restricted-syntax': ['error', ...RECORD_SPELLING] },
  },
  {
    files: RECORD_SQL_FILES,
    rules: { 'no-restricted-syntax': ['error', ...METADATA_SPELLING] },
  },
);
