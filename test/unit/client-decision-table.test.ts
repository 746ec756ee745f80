import { Metadata, status } from '@grpc/grpc-js';
import { ErrorInfo, RetryInfo } from '../../src/gen/proto/google/rpc/error_details';
import { Status } from '../../src/gen/proto/google/rpc/status';
import { decideRetry, type RetryDecision, type RetryFacts } from '../../src/idempotency/client/retry-decision';
import type { Level } from '../../src/idempotency/policy';
import { metadataOf } from '../support/scripted-server';

// The whole decision as data: {level × key × status × reason × pushback × time left × attempts × budget} → what follows.
// Four attempts; waits of 50, 100, 150 ms where the server names none. `-`: 10 s left, a key without end, 1 attempt, 10 tokens.
const TABLE = `
level   key  status              reason               pushback  left  keyLeft  attempts  tokens  decision
safe    no   UNAVAILABLE         -                    -         -     -        -         -       retry 50 UNAVAILABLE
safe    yes  UNAVAILABLE         -                    -         -     -        -         -       retry 50 UNAVAILABLE
idem    no   UNAVAILABLE         -                    -         -     -        -         -       retry 50 UNAVAILABLE
idem    yes  UNAVAILABLE         -                    -         -     -        -         -       retry 50 UNAVAILABLE
unknown yes  UNAVAILABLE         -                    -         -     -        -         -       retry 50 UNAVAILABLE
unknown no   UNAVAILABLE         -                    -         -     -        -         -       stop no_request_id
unknown no   UNAVAILABLE         STORE_UNAVAILABLE    20        -     -        -         -       stop no_request_id
unknown no   UNAVAILABLE         -                    -1        -     -        -         -       stop no_request_id
unknown no   UNAVAILABLE         -                    soon      -     -        -         -       stop no_request_id
unknown no   UNAVAILABLE         -                    -         0     -        -         -       stop no_request_id
unknown no   UNAVAILABLE         -                    -         -     -        4         0       stop no_request_id
unknown no   timeout             -                    -         -     -        -         -       stop no_request_id
unknown no   reset               -                    -         -     -        -         -       stop no_request_id
unknown no   resetCancel         -                    -         -     -        -         -       stop no_request_id
unknown no   calmDown            -                    -         -     -        -         -       stop no_request_id
unknown no   noStatus            -                    -         -     -        -         -       stop no_request_id
unknown no   ABORTED             REQUEST_IN_PROGRESS  20        -     -        -         -       stop no_request_id
unknown no   INVALID_ARGUMENT    REQUEST_ID_MISSING   -1        -     -        -         -       answer
unknown no   FAILED_PRECONDITION KEYLESS_RETRY        -1        -     -        -         -       answer
unknown no   INTERNAL            -                    -         -     -        -         -       answer
unknown yes  timeout             -                    -         -     -        -         -       retry 50 DEADLINE_EXCEEDED
unknown yes  reset               -                    -         -     -        -         -       retry 50 INTERNAL
unknown yes  resetCancel         -                    -         -     -        -         -       retry 50 CANCELLED
unknown yes  calmDown            -                    -         -     -        -         -       retry 50 RESOURCE_EXHAUSTED
unknown yes  noStatus            -                    -         -     -        -         -       retry 50 UNKNOWN
unknown yes  UNAVAILABLE         STORE_UNAVAILABLE    20        -     -        -         -       retry 20 UNAVAILABLE
unknown yes  ABORTED             REQUEST_IN_PROGRESS  500       -     -        -         -       retry 500 REQUEST_IN_PROGRESS
unknown yes  ABORTED             CLAIM_LOST           500       -     -        -         -       retry 500 CLAIM_LOST
unknown yes  ABORTED             REQUEST_IN_PROGRESS  -         -     -        -         -       retry 50 REQUEST_IN_PROGRESS
unknown yes  ABORTED             REQUEST_IN_PROGRESS  500       500   -        -         -       stop deadline
unknown yes  ABORTED             REQUEST_IN_PROGRESS  500       501   -        -         -       retry 500 REQUEST_IN_PROGRESS
unknown yes  ABORTED             REQUEST_IN_PROGRESS  500       -     500      -         -       stop key_expired
unknown yes  ABORTED             REQUEST_IN_PROGRESS  -1        -     -        -         -       stop pushback
unknown yes  ABORTED             -                    20        -     -        -         -       answer
unknown yes  ABORTED             other:CLAIM_LOST     20        -     -        -         -       answer
unknown yes  ABORTED             RetryInfo:20         -         -     -        -         -       retry 20 ABORTED
unknown yes  ABORTED             RetryInfo:20         70        -     -        -         -       retry 70 ABORTED
unknown yes  ABORTED             RetryInfo:20         -1        -     -        -         -       stop pushback
unknown yes  ABORTED             RetryInfo:20         -         -     -        4         -       stop attempts
unknown no   ABORTED             RetryInfo:20         -         -     -        -         -       stop no_request_id
unknown yes  RESOURCE_EXHAUSTED  -                    -         -     -        -         -       answer
unknown yes  RESOURCE_EXHAUSTED  -                    20        -     -        -         -       answer
unknown yes  RESOURCE_EXHAUSTED  RetryInfo:20         -         -     -        -         -       retry 20 RESOURCE_EXHAUSTED
unknown yes  UNAVAILABLE         RetryInfo:20         70        -     -        -         -       retry 70 UNAVAILABLE
unknown yes  UNAVAILABLE         RetryInfo:70         20        -     -        -         -       retry 70 UNAVAILABLE
unknown yes  UNAVAILABLE         garbage              -         -     -        -         -       stop unreadable
unknown yes  UNAVAILABLE         garbage              20        -     -        -         -       stop unreadable
unknown yes  ABORTED             garbage              -         -     -        -         -       answer
unknown yes  FAILED_PRECONDITION garbage              -         -     -        -         -       answer
unknown yes  UNAVAILABLE         -                    0         -     -        -         -       retry 0 UNAVAILABLE
unknown yes  UNAVAILABLE         -                    -1        -     -        -         -       stop pushback
unknown yes  UNAVAILABLE         -                    1.5       -     -        -         -       stop pushback
unknown yes  UNAVAILABLE         -                    soon      -     -        -         -       stop pushback
unknown yes  UNAVAILABLE         -                    5,7       -     -        -         -       stop pushback
unknown yes  UNAVAILABLE         -                    99999     -     -        -         -       stop deadline
unknown yes  UNAVAILABLE         -                    -         51    -        -         -       retry 50 UNAVAILABLE
unknown yes  UNAVAILABLE         -                    -         50    -        -         -       stop deadline
unknown yes  UNAVAILABLE         -                    -         0     -        -         -       stop deadline
unknown yes  UNAVAILABLE         -                    -         -3    -        -         -       stop deadline
unknown yes  UNAVAILABLE         -                    -         -     51       -         -       retry 50 UNAVAILABLE
unknown yes  UNAVAILABLE         -                    -         -     50       -         -       stop key_expired
unknown yes  UNAVAILABLE         -                    -         50    50       -         -       stop key_expired
unknown yes  UNAVAILABLE         -                    -         40    45       -         -       stop deadline
unknown yes  UNAVAILABLE         -                    -         -     -        2         -       retry 100 UNAVAILABLE
unknown yes  UNAVAILABLE         -                    -         -     -        3         -       retry 150 UNAVAILABLE
unknown yes  UNAVAILABLE         -                    -         -     -        4         -       stop attempts
unknown yes  UNAVAILABLE         -                    20        -     -        4         -       stop attempts
unknown yes  UNAVAILABLE         -                    -         0     0        4         0       stop attempts
unknown yes  UNAVAILABLE         -                    -         -     -        -         1       retry 50 UNAVAILABLE
unknown yes  UNAVAILABLE         -                    -         -     -        -         0.9     stop budget
unknown yes  ABORTED             REQUEST_IN_PROGRESS  20        -     -        -         0       stop budget
unknown yes  UNAVAILABLE         -                    -         50    -        -         0       stop deadline
unknown yes  UNAVAILABLE         -                    -1        -     -        -         0       stop pushback
unknown yes  DEADLINE_EXCEEDED   -                    -         -     -        -         -       answer
unknown yes  CANCELLED           -                    -         -     -        -         -       answer
unknown yes  INTERNAL            -                    -         -     -        -         -       answer
unknown yes  UNKNOWN             -                    -         -     -        -         -       answer
unknown yes  DATA_LOSS           -                    20        -     -        -         -       answer
unknown yes  INVALID_ARGUMENT    REQUEST_ID_MALFORMED -1        -     -        -         -       answer
unknown yes  FAILED_PRECONDITION REQUEST_ID_REUSED    -1        -     -        -         -       answer
unknown yes  FAILED_PRECONDITION REQUEST_ID_EXPIRED   -1        -     -        -         -       answer
unknown yes  FAILED_PRECONDITION REQUEST_PARKED       -1        -     -        -         -       answer
unknown yes  FAILED_PRECONDITION -                    20        -     -        -         -       answer
unknown yes  ALREADY_EXISTS      RESPONSE_NOT_RECORDED -1       -     -        -         -       answer
unknown yes  UNAUTHENTICATED     PRINCIPAL_MISSING    -1        -     -        -         -       answer
unknown yes  NOT_FOUND           -                    20        -     -        -         -       answer
unknown yes  PERMISSION_DENIED   -                    20        -     -        -         -       answer
unknown yes  OUT_OF_RANGE        -                    20        -     -        -         -       answer
unknown yes  UNIMPLEMENTED       -                    20        -     -        -         -       answer
safe    no   timeout             -                    -         -     -        -         -       retry 50 DEADLINE_EXCEEDED
safe    no   reset               -                    -         -     -        -         -       retry 50 INTERNAL
safe    no   UNAVAILABLE         -                    -         -     -        4         -       stop attempts
safe    no   UNAVAILABLE         -                    -         -     -        -         0       stop budget
idem    no   ABORTED             other:ETAG_MISMATCH  -         -     -        -         -       answer
idem    no   ABORTED             other:ETAG_MISMATCH  -1        -     -        -         -       answer
idem    no   UNAVAILABLE         -                    -1        -     -        -         -       stop pushback
idem    yes  UNAVAILABLE         -                    -         -     40       -         -       stop key_expired
`;

const LEVELS: Readonly<Record<string, Level>> = { safe: 'NO_SIDE_EFFECTS', idem: 'IDEMPOTENT', unknown: 'UNKNOWN' };

/** Failures that this side makes: they have no headers, and texts of grpc-js. */
const MADE_HERE: Readonly<Record<string, readonly [status, string]>> = {
  timeout: [status.DEADLINE_EXCEEDED, 'Deadline exceeded after 0.3s'],
  reset: [status.INTERNAL, 'Received RST_STREAM with code 2 (Internal server error)'],
  resetCancel: [status.CANCELLED, 'Call cancelled'],
  calmDown: [status.RESOURCE_EXHAUSTED, 'Bandwidth exhausted or memory limit exceeded'],
  noStatus: [status.UNKNOWN, 'Received HTTP status code 502'],
};

interface Row {
  readonly text: string;
  readonly facts: RetryFacts;
  readonly decision: string;
}

const rows: readonly Row[] = TABLE.trim().split('\n').slice(1).map(readRow);

function readRow(text: string): Row {
  const [level = '', key, code = '', reason = '', pushback = '', ...numbers] = text.split(/\s+/);
  const decision = numbers.splice(4).join(' ');
  const [left = NaN, keyLeft = NaN, attempts = NaN, tokens = NaN] = numbers.map((number, index) =>
    number === '-' ? [10_000, Infinity, 1, 10][index] : Number(number),
  );
  return {
    text,
    decision,
    facts: {
      level: LEVELS[level] ?? 'UNKNOWN',
      hasKey: key === 'yes',
      status: statusOf(code, reason, pushback),
      ranOutOfTime: code === 'timeout',
      attempts,
      remainingMs: left,
      keyRemainingMs: keyLeft,
      budgetTokens: tokens,
    },
  };
}

function statusOf(code: string, reason: string, pushback: string) {
  const here = MADE_HERE[code];
  if (here !== undefined) return { code: here[0], details: here[1], metadata: new Metadata() };
  const metadata = metadataOf({ 'content-type': 'application/grpc' });
  if (reason !== '-') metadata.set('grpc-status-details-bin', detailsOf(reason));
  if (pushback !== '-') metadata.set('grpc-retry-pushback-ms', pushback);
  return { code: status[code as keyof typeof status], details: 'the server said so', metadata };
}

function detailsOf(reason: string): Buffer {
  if (reason === 'garbage') return Buffer.from([255, 255, 255]);
  const [first = '', second] = reason.split(':');
  const detail =
    first === 'RetryInfo'
      ? RetryInfo.encode({ retryDelay: { seconds: 0n, nanos: Number(second) * 1e6 } })
      : ErrorInfo.encode({
          reason: second ?? first,
          domain: second === undefined ? 'idempotency.v1' : 'other.v1',
          metadata: {},
        });
  const typeUrl = `type.googleapis.com/google.rpc.${first === 'RetryInfo' ? first : 'ErrorInfo'}`;
  const details = [{ typeUrl, value: Buffer.from(detail.finish()) }];
  return Buffer.from(Status.encode({ code: 0, message: '', details }).finish());
}

const settings = { maxAttempts: 4, initialBackoffMs: 100, backoffMultiplier: 2, maxBackoffMs: 300, random: () => 0.5 };

function textOf(decision: RetryDecision): string {
  switch (decision.kind) {
    case 'answer':
      return 'answer';
    case 'stop':
      return `stop ${decision.why}`;
    case 'retry':
      return `retry ${decision.delayMs} ${decision.reason}`;
  }
}

test.each(rows)('$text', ({ facts, decision }) => {
  expect(textOf(decideRetry(facts, settings))).toBe(decision);
});

test('every combination of the values of the table: what is keyless and of an unknown level is never sent again', () => {
  const values = <Value>(read: (facts: RetryFacts) => Value): readonly Value[] => [
    ...new Set(rows.map(({ facts }) => read(facts))),
  ];
  const statuses = rows.map(({ facts: { status: failed, ranOutOfTime } }) => ({ failed, ranOutOfTime }));
  let keyless = 0;
  let keyed = 0;
  for (const { failed, ranOutOfTime } of statuses)
    for (const attempts of values((facts) => facts.attempts))
      for (const remainingMs of values((facts) => facts.remainingMs))
        for (const keyRemainingMs of values((facts) => facts.keyRemainingMs))
          for (const budgetTokens of values((facts) => facts.budgetTokens)) {
            const rest = { status: failed, ranOutOfTime, attempts, remainingMs, keyRemainingMs, budgetTokens };
            const unknown = { level: 'UNKNOWN' as const, ...rest };
            if (decideRetry({ ...unknown, hasKey: false }, settings).kind === 'retry') keyless += 1;
            const decision = decideRetry({ ...unknown, hasKey: true }, settings);
            if (decision.kind !== 'retry') continue;
            keyed += 1;
            expect(attempts).toBeLessThan(4);
            expect(budgetTokens).toBeGreaterThanOrEqual(1);
            expect(decision.delayMs).toBeLessThan(Math.min(remainingMs, keyRemainingMs));
          }
  expect(keyless).toBe(0);
  expect(keyed).toBeGreaterThan(500);
});
