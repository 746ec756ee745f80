import { REQUEST_ID, type SeenRecord } from '../idempotency/index';
import { UsageError } from './command';

/** The words by which records are named; that of the key is the name that it has in metadata. */
export const RECORD_OPTIONS = {
  [REQUEST_ID]: { type: 'string' },
  scope: { type: 'string' },
  method: { type: 'string' },
} as const;

/** Those of a command that changes a record. */
export const CHANGE_OPTIONS = {
  ...RECORD_OPTIONS,
  operator: { type: 'string' },
  'dry-run': { type: 'boolean', default: false },
} as const;

/** Which records are meant. */
export interface RecordWords {
  readonly requestId: string;
  /** Undefined for all. */
  readonly scope: string | undefined;
  /** As on the wire, or its last part alone; undefined for all. */
  readonly method: string | undefined;
}

/** What is changed, and by whom. */
export interface ChangeWords extends RecordWords {
  readonly scope: string;
  readonly method: string;
  /** Undefined where nothing is to be changed, only told. */
  readonly operator: string | undefined;
}

type Values = Readonly<Partial<Record<typeof REQUEST_ID | 'scope' | 'method' | 'operator', string>>>;

/** @throws UsageError that names the word */
export function readRecordWords({ [REQUEST_ID]: requestId, scope, method }: Values): RecordWords {
  if (requestId === undefined || requestId === '') {
    throw new UsageError('--request-id: expected the key that the request carried');
  }
  return { requestId, scope, method };
}

/** @throws UsageError that names the word */
export function readChangeWords(
  values: Values & { readonly 'dry-run': boolean },
  { USER: user }: NodeJS.ProcessEnv,
): ChangeWords {
  const { requestId, scope, method } = readRecordWords(values);
  if (scope === undefined) throw new UsageError('--scope: expected the account whose key it is, as inspect shows it');
  if (method === undefined) throw new UsageError('--method: expected the method that was called, as inspect shows it');
  return { requestId, scope, method, operator: values['dry-run'] ? undefined : readOperator(values.operator ?? user) };
}

/** It is kept with the record and logged, so it must be somebody. */
function readOperator(operator: string | undefined): string {
  if (operator !== undefined && /^[\x21-\x7e](?:[\x20-\x7e]{0,62}[\x21-\x7e])?$/.test(operator)) return operator;
  throw new UsageError(
    '--operator: expected who does this, such as --operator ada (1 to 64 printable ASCII characters), since USER does not ' +
      'say it and it is recorded; --dry-run needs none',
    { withUsage: false },
  );
}

/** Whether a record is one of those that are meant. */
export function isMeant({ scope, method }: Omit<RecordWords, 'requestId'>, record: SeenRecord): boolean {
  if (scope !== undefined && record.scope !== scope) return false;
  return method === undefined || record.path?.endsWith(pathEnd(method)) === true;
}

/** How the path of a method ends that was named whole or in part. */
export function pathEnd(method: string): string {
  return method.startsWith('/') ? method : `/${method}`;
}
