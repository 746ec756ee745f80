import { checksOf } from './check-list';

/** The checks of the store that stand in no WHERE. */
export const STORE_CHECKS = [
  ...checksOf('store/sql/fragments', [
    [
      `$3::float8 IS NOT NULL AND (\${TOO_OLD} OR \${DROPPED})`,
      `(\${TOO_OLD} OR \${DROPPED})`,
      'store/guards-look-ups',
    ],
    [`AND (\${TOO_OLD} OR \${DROPPED})`, `AND (\${DROPPED})`, 'store/dates'],
    [`(\${TOO_OLD} OR \${DROPPED}) AS`, `(\${TOO_OLD}) AS`, 'store/dates'],
  ]),
  ...checksOf('store/sql/fragments', [
    [
      `CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END`,
      `'on'`,
      'store/durability',
    ],
  ]),
  ...checksOf('store/attempts', [
    [`attempt <= 1 || attempt`, `attempt`, 'e2e/outage-pauses'],
    [`attempt <= 1 || attempt >= MOST_ATTEMPTS`, `attempt <= 1`, 'e2e/outage-pauses'],
  ]),
  ...checksOf('store/sql/look-up', [
    [`$3::float8 IS NOT NULL AND \${FROM_FUTURE} AS`, `false AS`, 'store/dates'],
    [
      `greatest(0, extract(epoch FROM record.lease_until`,
      `greatest(-1, extract(epoch FROM record.lease_until`,
      'store/guards-look-ups',
    ],
  ]),
  ...checksOf('store/sql/step', [[`coalesce($7::text, record.resource)`, `$7::text`, 'e2e/published-in-phases']]),
  ...checksOf('store/sql/methods', [
    [`greatest(retention_ms, $2::bigint)`, `$2::bigint`, 'store/methods'],
    [`greatest(max_key_age_ms, $3::bigint)`, `$3::bigint`, 'store/methods'],
  ]),
  ...checksOf('store/sql/retention', [
    [`ORDER BY day\``, `ORDER BY day DESC\``, 'store/retention-drop', 'store/retention-races'],
  ]),
  ...checksOf('store/sql/lease', [
    [
      `SET owner_token = gen_random_uuid(), lease_until = now()`,
      `SET lease_until = now()`,
      'store/model',
      'store/leases',
    ],
  ]),
  ...checksOf('store/sql/operator', [
    [
      `SET owner_token = $4::uuid, lease_until`,
      `SET owner_token = coalesce(record.owner_token, $4::uuid), lease_until`,
      'store/operator-guards',
    ],
    [
      `owner_token = $4::uuid, status_code`,
      `owner_token = coalesce(record.owner_token, $4::uuid), status_code`,
      'store/operator-changes',
    ],
  ]),
  ...checksOf('store/operator-changes', [
    [
      `if (record.state === 'claimed' && record.leaseLeftMs > 0 && !endLease) return 'running';`,
      ``,
      'store/operator-changes',
    ],
    [`return hasOutlivedItsRetention(record) ? 'outlived' : undefined;`, `return undefined;`, 'store/operator-changes'],
    [`if (record.leaseLeftMs > 0) return 'running';`, ``, 'store/operator-changes'],
    [`if (isLockTimeout(error)) return 'in_hand';`, ``, 'store/operator-changes'],
  ]),
  ...checksOf('store/judge', [
    [`assertSubject(row, request, methodId);`, ``, 'store/judge'],
    [`attempt === 1 ? ageMs : Math.min(`, `Math.min(`, 'store/attempt-age'],
    [`Math.min(ageMs, Math.max(0, leaseMs - leaseLeftMs))`, `ageMs`, 'store/attempt-age'],
    [`if (!sameRequest(row.fingerprint, request.fingerprint)) return { kind: 'mismatch' };`, ``, 'store/claim'],
    [`row.scope === scope && row.method`, `row.method`, 'store/look-up-status', 'store/judge'],
    [`row.method === methodId && row.requestId`, `row.requestId`, 'store/look-up-status', 'store/judge'],
    [` && row.requestId === key.text) return`, `) return`, 'store/look-up-status', 'store/judge'],
    [`if (code === null) throw new Error('completed record without a status');`, ``, 'store/judge'],
    [`if (!answerKept) return`, `if (false as boolean) return`, 'e2e/large-answers', 'e2e/compact'],
  ]),
  ...checksOf('store/again', [
    [`round === TRIES || !isSerializationFailure(error)`, `round === TRIES`, 'unit/again'],
    [`round === TRIES || !isSerializationFailure(error)`, `!isSerializationFailure(error)`, 'unit/again'],
  ]),
  ...checksOf('store/claim-key', [
    [`row.state === null || row.recoveryPoint === null`, `row.state === null`, 'store/half-finished'],
    [
      `if (round === ROUNDS || missedTakeovers === 2) return IN_HAND;`,
      `if (round === ROUNDS) return IN_HAND;`,
      'store/guards-look-ups',
      'store/claim-retries',
    ],
    [`if (round === ROUNDS || missedTakeovers === 2)`, `if (missedTakeovers === 2)`, 'store/claim-retries'],
    [`if (isLockTimeout(error)) return IN_HAND;`, ``, 'store/durability'],
    [`if (round === ROUNDS || !(isSer`, `if (!(isSer`, 'store/claim-retries'],
    [`!(isSerializationFailure(error) || isLostConnection(error))`, `false`, 'store/claim-retries'],
    [`isSerializationFailure(error) || isLostConnection(error)`, `isLostConnection(error)`, 'store/claim-retries'],
    [
      `(isSerializationFailure(error) || isLostConnection(error))`,
      `isSerializationFailure(error)`,
      'store/claim-retries',
    ],
    [`if (row.fromFuture) return { kind: 'from_future' };`, ``, 'store/dates'],
    [`return row.tooOld ? { kind: 'expired' } : 'moved';`, `return 'moved';`, 'store/dates'],
    [
      `if (claim.doubtful.has(row.ownerToken)) return granted`,
      `if (false as boolean) return granted`,
      'store/claim-retries',
    ],
    [`if (found.leaseLeftMs > 0) return { ...found, kind: 'in_progress' };`, ``, 'store/claim'],
    [`row.recoveryPoint !== null && row.attempt >= last)`, `row.attempt >= last)`, 'store/guards-look-ups'],
    [`row.recoveryPoint !== null && row.attempt >= last)`, `row.recoveryPoint !== null)`, 'store/guards-look-ups'],
    [`hasOutlivedRetention(row, request) ? 1 : lastAttempt(row)`, `lastAttempt(row)`, 'store/guards-look-ups'],
    [`return key.dated === undefined && ageMs`, `return ageMs`, 'store/guards-look-ups'],
    [`ageMs > policy.retentionMs`, `ageMs > 0`, 'store/guards-look-ups'],
    [`return MOST_ATTEMPTS + startedBy(results) - 1;`, `return MOST_ATTEMPTS;`, 'e2e/unstarted-attempts'],
  ]),
  ...checksOf('store/settle', [
    [
      `if (found.kind === 'claimed' && row.ownerToken === newToken)`,
      `if (found.kind === 'claimed')`,
      'store/settle',
      'store/model',
    ],
    [`if (found.kind === 'claimed' && row.ownerToken === newToken)`, `if (false as boolean)`, 'store/settle-trouble'],
    [` && found.kind !== 'not_kept') return`, `) return`, 'store/settle'],
    [`confirmed.length > 0 ? 'committed' : 'lost'`, `'committed'`, 'store/settle'],
    [
      `if (!again || performance.now() + pauseMs > giveUpAt)`,
      `if (performance.now() + pauseMs > giveUpAt)`,
      'store/settle-trouble',
    ],
    [`if (!again || performance.now() + pauseMs > giveUpAt)`, `if (!again)`, 'store/guards-look-ups'],
  ]),
  ...checksOf('store/postgres-store', [
    [`for (const ownerToken of doubtful) giveBack({ ...placeOf(request), ownerToken });`, ``, 'store/late-claims'],
    [`if (said.kind === 'granted') doubtful.delete(said.claim.ownerToken);`, ``, 'store/late-claims'],
    [`for (const claim of claims) giveBack(claim);`, ``, 'store/late-claims'],
    [`isolationLevel = 'ReadCommitted' }`, `isolationLevel }`, 'e2e/default-isolation'],
  ]),
  ...checksOf('store/operator', [
    [`if (isDated || recoveryPoint`, `if (recoveryPoint`, 'store/operator-changes', 'e2e/operator-commands'],
    [`return since.getTime() + ageMs > expiresAt.getTime();`, `return true;`, 'store/operator-changes'],
  ]),
  ...checksOf('store/insert-claim', [
    [`if (!provesRollback(error)) for`, `if (false as boolean) for`, 'store/late-claims', 'store/claim-retries'],
    // One token for all: a late INSERT revives what was settled.
    [
      `const ownerToken = randomUUID();\n  const values`,
      `const ownerToken = claim.takeoverToken;\n  const values`,
      'store/late-claims',
    ],
  ]),
  ...checksOf('store/give-back', [
    [`if (isPoolEnded(error)) waiting.clear();`, ``, 'unit/give-back'],
    [`if (isOutage(error) && !isLockTimeout(error)) return false;`, ``, 'store/late-claims', 'unit/give-back'],
    [`isThere &&= await look(one);`, `isThere = await look(one);`, 'unit/give-back'],
    [
      `if (isGivenBack || afterMs === undefined) waiting.delete(one);`,
      `if (true as boolean) waiting.delete(one);`,
      'unit/give-back',
    ],
    [`if (waiting.size > MOST_WAITING && oldest !== undefined) waiting.delete(oldest);`, ``, 'unit/give-back'],
  ]),
  ...checksOf('store/natural-batch', [
    [
      `await Promise.all(batch.map(alone));`,
      `for (const { reject } of batch) reject(new Error('batch'));`,
      'unit/natural-batch',
      'store/natural-batch',
    ],
    [`queue.length === 0 || flights >= mostFlights`, `queue.length === 0`, 'unit/natural-batch', 'store/natural-batch'],
    [
      `if (flights > 0) waitForTheNext();`,
      `if (false as boolean) waitForTheNext();`,
      'unit/natural-batch',
      'store/natural-batch',
    ],
  ]),
  ...checksOf('store/leases', [
    [`unused: 1 }`, `unused: 0 }`, 'e2e/unstarted-attempts'],
    [
      `renewed.has(token) ? 'renewed' : stillHeld.has(token) ? 'busy' : 'lost'`,
      `renewed.has(token) ? 'renewed' : 'lost'`,
      'store/leases',
    ],
  ]),
  ...checksOf('store/database-error', [
    [
      `if (state !== undefined) return !/^(08|57|40003)/.test(state);`,
      `if (state !== undefined) return true;`,
      'unit/database-error',
    ],
  ]),
  ...checksOf('store/retention-drop', [
    [`if (await isRunning(client, day)) return { type: 'day_held_back', day };`, ``, 'store/guards-retention'],
    [`if ((await stageOf(tx, day)) !== 'detached') return undefined;`, ``, 'store/retention-drop'],
    [`await tx.$queryRawUnsafe(lockDay(day));`, ``, 'store/retention-races'],
    [`if (await isRunning(tx, day)) {`, `if (false as boolean) {`, 'store/retention-races'],
    [
      `const kept = await tx.$queryRawUnsafe<unknown[]>(keepUnfinished(day));`,
      `const kept: unknown[] = [];`,
      'store/retention-drop',
    ],
    [`if (row?.patience !== '0') return;`, `if (true as boolean) return;`, 'store/retention-drop'],
    [`if (event.type === 'day_postponed') return;`, ``, 'store/retention-races'],
    [`await client.$queryRawUnsafe(finalizeDetach(day));`, ``, 'store/retention-races'],
  ]),
  ...checksOf('store/retention-election', [
    [`if (elected.length === 0) return undefined;`, ``, 'store/retention-election'],
    [`isHeld &&= renewed.length > 0;`, ``, 'store/retention-election'],
  ]),
];
