import { checksOf } from './check-list';

/** The checks of the server before an effect. */
export const SERVER_CHECKS = [
  ...checksOf('server/admission', [
    [`if (reading.kind !== 'key') {`, `if (reading.kind === 'malformed') {`, 'e2e/unusable-keys', 'e2e/level-decides'],
    [`  if (isFull(options)) {`, `  if (false as boolean) {`, 'e2e/lease-count'],
    [`end === 'given_up' || isFull(options)`, `end === 'given_up'`, 'e2e/max-wait-processes', 'e2e/lease-count'],
    [
      `Math.min(policy.maxWaitMs, deadlineMs - Date.now() - ANSWER_BEFORE_DEADLINE_MS)`,
      `policy.maxWaitMs`,
      'e2e/max-wait',
    ],
    [`if (error instanceof UnreadableRequestError) return undefined;`, ``, 'store/guards-calls'],
    [`if (policy.enforcement === 'OBSERVE' && resent !== undefined) return resent;`, ``, 'e2e/observe'],
    [`policy.enforcement === 'OBSERVE' && resent !== undefined`, `resent !== undefined`, 'e2e/unclaimed-calls'],
    [`if (resent !== undefined) return resent;`, ``, 'e2e/refusal-table', 'e2e/unclaimed-calls'],
    [`message: policy.resume ? call.request : undefined`, `message: call.request`, 'e2e/completer-bounds'],
    [`&& !outcome.takeover && options.regenerated`, `&& options.regenerated`, 'e2e/regenerated-keys'],
    [`outcome.kind === 'granted' && !outcome.takeover && options`, `options`, 'e2e/regenerated-keys'],
    [`policy.key === 'REQUIRED' || metadata`, `metadata`, 'e2e/unusable-keys', 'e2e/level-decides'],
    [`if (enforcement === 'OBSERVE') return`, `if (true as boolean) return`, 'e2e/unusable-keys', 'e2e/refusal-table'],
    [`if (enforcement === 'OBSERVE') return`, `if (false as boolean) return`, 'e2e/observe'],
  ]),
  ...checksOf('server/unsafe-resend', [
    [`level === 'UNKNOWN' && wasResent(metadata)`, `false as boolean`, 'e2e/refusal-table'],
    [`level === 'UNKNOWN' && wasResent(metadata)`, `wasResent(metadata)`, 'store/guards-calls'],
    [` || countOf(metadata, ENVOY_ATTEMPT) > 1`, ``, 'e2e/refusal-table'],
    [`countOf(metadata, PREVIOUS_ATTEMPTS) > 0 || `, ``, 'e2e/refusal-table'],
  ]),
  ...checksOf('server/call-report', [[`if (line !== undefined) return;`, ``, 'e2e/every-call-line']]),
  ...checksOf('server/regenerated-keys', [
    [`before !== undefined && nowMs - before.sinceMs < WITHIN_MS`, `before !== undefined`, 'unit/regenerated-keys'],
    [`return before.keys === MANY;`, `return before.keys >= MANY;`, 'unit/regenerated-keys'],
    [`seen.size > MOST_CONTENTS ? seen.keys() : []`, `[]`, 'unit/regenerated-keys'],
  ]),
  ...checksOf('server/completer', [
    [`if (stopping.signal.aborted) return [];`, ``, 'e2e/completer-bounds'],
    [`settings.mostAtOnce - running.size`, `settings.mostAtOnce`, 'e2e/completer-bounds'],
    [`if (records !== (told.get(path) ?? 0)) onEvent`, `onEvent`, 'e2e/completer-bounds'],
    [`loop ??= lookForEver();`, `loop = lookForEver();`, 'e2e/completer-bounds'],
  ]),
  ...checksOf('server/completer-resume', [
    [`Math.min(limit, mostAttempts - leases.count())`, `limit`, 'e2e/completer-bounds'],
    [`if (signal.aborted) break;`, ``, 'e2e/completer-bounds'],
    [`if (outcome.now) onEvent`, `onEvent`, 'e2e/completer'],
  ]),
  ...checksOf('server/entrance', [
    [`identification?.kind !== 'identified'`, `false as boolean`, 'e2e/callers', 'e2e/refusal-table'],
    [`call.report.notAdmitted('principal_missing', { requestId: keyOf(options, call) });`, ``, 'e2e/every-call-line'],
    [
      `report.notAdmitted('store_unavailable', { ...scope, requestId: keyOf(options, call) });`,
      ``,
      'e2e/every-call-line',
    ],
  ]),
  ...checksOf('server/pass-through', [
    [`if (isUnsafeResend(policy, metadata)) return refuseResend(identified.scope);`, ``, 'e2e/unclaimed-calls'],
    [`onCancel: () => gone?.abort(),`, ``, 'e2e/unended-work'],
    [
      `send(call, wireReply({ kind: 'refuse', refusal: refusals.principalMissing() }), report);`,
      `pass();`,
      'e2e/callers',
    ],
  ]),
  ...checksOf('server/principal', [
    [`scope === undefined || scope === ''`, `scope === undefined`, 'e2e/callers'],
    [` && scope.isWellFormed()`, ``, 'e2e/odd-accounts'],
    [` && !scope.includes('\\0')`, ``, 'e2e/odd-accounts'],
  ]),
  ...checksOf('server/interceptor', [
    [
      `!cancelled.signal.aborted || context === undefined || context.started`,
      `context === undefined || context.started`,
      'e2e/cancelled-before-start',
    ],
    [`context === undefined || context.started`, `context === undefined`, 'e2e/client-timeout', 'e2e/after-the-commit'],
    [
      `    endIfNotStarted();
  };`,
      `  };`,
      'e2e/delayed-claim',
    ],
    [
      `cancelled.abort(CALLER_GONE);
          endIfNotStarted();`,
      `cancelled.abort(CALLER_GONE);`,
      'e2e/cancelled-before-start',
    ],
    [
      `report.ended(wireReply({ kind: 'status', error: refusals.callerGone() }), {});`,
      ``,
      'e2e/cancelled-before-start',
    ],
    [`assertSendable(status.details ?? '', status.metadata ?? new Metadata());`, ``, 'e2e/long-resource'],
    [`await unlessAborted(identification, cancelled.signal)`, `await identification`, 'e2e/unended-work'],
    [`if (policy.key !== 'IGNORED') return`, `if (true as boolean) return`, 'e2e/level-decides', 'e2e/statement-count'],
    [`if (message instanceof ReceivedRequest) {`, `if (true as boolean) {`, 'e2e/incomplete-protection'],
    [
      `const unary = !method.requestStream && !method.responseStream;`,
      `const unary = true as boolean;`,
      'e2e/streaming',
    ],
  ]),
  ...checksOf('server/fenced-transaction', [
    [
      `    seal();
`,
      ``,
      'e2e/swallowed-statements',
      'e2e/completion-misuse',
    ],
    [`.finally(() => sealed?.close())`, ``, 'e2e/swallowed-statements'],
    [`if (abandoned) throw new AbandonedError();`, ``, 'unit/fenced-transaction'],
    [`if (isFencing && store.readFault(error).fenced) return { kind: 'fenced' };`, ``, 'unit/fenced-transaction'],
    [`if (isFencing && store`, `if (store`, 'unit/fenced-transaction'],
    [
      `if (passed === undefined || store.readFault(error).rolledBack) throw error;`,
      `if (passed === undefined) throw error;`,
      'e2e/serialization',
      'e2e/unknown-commit',
    ],
    [
      `if (passed === undefined || store.readFault(error).rolledBack) throw error;`,
      `throw error;`,
      'e2e/unknown-commit',
      'e2e/unknown-commit-cuts',
    ],
    [`run === RUNS || !request.store`, `!request.store`, 'unit/complete', 'e2e/serialization'],
    [` || !request.store.readFault(error).runAgain) throw`, `) throw`, 'store/guards-calls'],
    [`if (leftMs <= 0) throw error;`, ``, 'unit/complete', 'e2e/serialization'],
    [`timer.failAfter(commitWithinMs, 'COMMIT gave no answer');`, ``, 'unit/fenced-transaction'],
  ]),
  ...checksOf('server/within-lease', [
    [`await lease.pause();`, ``, 'e2e/lease-renewal'],
    [
      `if (lease.leftMs() < NEARLY_ALL * lease.leaseMs && !(await lease.prolong())) return undefined;`,
      ``,
      'e2e/lease-renewal',
      'e2e/lease-blocked-loop',
    ],
    [`    lease.resume();`, ``, 'e2e/lease-renewal'],
  ]),
  ...checksOf('server/complete', [
    [`await store.assertNotAborted(client);`, ``, 'unit/complete'],
    [`return sizeOf(answer) <= maxResponseBytes;`, `return true;`, 'e2e/large-answers'],
    [`if (answer.resource !== undefined) return false;`, `return false;`, 'e2e/compact'],
  ]),
  ...checksOf('server/complete-held', [
    [`if (settled.kind === 'fenced') held?.lease.lose(`, `if (false as boolean) held?.lease.lose(`, 'e2e/attempt-ends'],
    [`held.lease.replace(settlement.claim);`, ``, 'e2e/unknown-commit', 'e2e/unknown-commit-cuts'],
  ]),
  ...checksOf('server/running-attempt', [
    [`if (refusal !== undefined) return handled(`, `if (false as boolean) return handled(`, 'e2e/completion-misuse'],
    [`if (isOver) return`, `if (false as boolean) return`, 'e2e/attempt-ends'],
    [`if (!isOutside || held === undefined)`, `if (true as boolean)`, 'e2e/unended-work'],
    [`if (!isOutside || held === undefined)`, `if (held === undefined)`, 'e2e/unended-work'],
    [
      `if (running !== undefined) return \`\${what}: \${running}`,
      `if (false as boolean) return \`\${what}: \${running}`,
      'e2e/completion-misuse',
    ],
    [
      `    journal.assertTaken();
`,
      ``,
      'e2e/phases',
    ],
    [`      if (isNew) publishing`, `      if (false as boolean) publishing`, 'e2e/published-in-phases'],
    [`if (isNew && !isOver) publishing`, `if (isNew) publishing`, 'e2e/attempt-ends'],
    [`held === undefined || ending.kind !== 'not_completed'`, `held === undefined`, 'e2e/attempt-ends'],
  ]),
  ...checksOf('server/run-once', [
    [
      `held !== undefined && policy.allowDetached && kind`,
      `held !== undefined && kind`,
      'e2e/detached',
      'e2e/completion-misuse',
    ],
    [`await lease.pause();`, ``, 'e2e/attempt-ends'],
    [`held !== undefined || policy.level !== 'UNKNOWN'`, `true as boolean`, 'e2e/unclaimed-calls'],
    [`held !== undefined || policy.level !== 'UNKNOWN'`, `held !== undefined`, 'e2e/unclaimed-calls'],
    [`if (isHalfFinished && isOutage) {`, `if (isHalfFinished) {`, 'e2e/outage-pauses'],
    [`if (isHalfFinished && isOutage) {`, `if (isOutage) {`, 'e2e/outage-pauses'],
    [`const released = isHalfFinished`, `const released = (false as boolean)`, 'e2e/outage-pauses'],
    [`if (error instanceof StatusError) return { kind: 'status', error };`, ``, 'e2e/outcomes', 'e2e/handler-faults'],
  ]),
  ...checksOf('server/half-finished-error', [
    [`if (OPEN.has(code)) return error;`, `return error;`, 'e2e/phases'],
    [`if (OPEN.has(code)) return error;`, ``, 'e2e/phases', 'e2e/outage-pauses'],
  ]),
  ...checksOf('server/replay', [
    [`if (isLater) return`, `if (error instanceof StatusError) return`, 'e2e/compact'],
    [`if (rebuild === undefined || resource === undefined || code`, `if (code`, 'e2e/large-answers'],
    [` || code !== (status.OK as number)) {`, `) {`, 'e2e/compact', 'e2e/large-answers'],
  ]),
  ...checksOf('server/service', [
    [`assertSendable(sent.status.details, sent.status.metadata);`, ``, 'e2e/unsendable-errors'],
    [`if (policy.resume) options.resumable`, `options.resumable`, 'e2e/completer-bounds'],
    [`if (policy.recording === 'COMPACT' && rebuild === undefined) {`, `if (false as boolean) {`, 'e2e/compact'],
    [`if (context === undefined) {`, `if (false as boolean) {`, 'e2e/incomplete-protection'],
    [
      `    lease.end();
`,
      ``,
      'e2e/lease-renewal',
      'e2e/lease-count',
    ],
  ]),
  ...checksOf('server/lease-keeper', [
    [`if (!leases.has(lease)) return;`, ``, 'unit/lease-keeper', 'e2e/lease-renewal'],
    [`if (overLimit) onEvent`, `onEvent`, 'e2e/lease-limit'],
    [
      `lease.dueAtMs() > nowMs || !lease.isOverLimit(nowMs)`,
      `lease.dueAtMs() > nowMs`,
      'unit/lease-keeper',
      'e2e/lease-renewal',
    ],
    [
      `await Promise.all(ending.flatMap((lease) => renewing.get(lease) ?? []));`,
      ``,
      'unit/lease-keeper-end',
      'e2e/lease-end',
    ],
    [`lease.renewableAtMs() <= nowMs`, `true`, 'unit/lease-keeper', 'e2e/lease-renewal'],
  ]),
  ...checksOf('server/kept-lease', [
    [`state === 'renewing' && !paused ?`, `state === 'renewing' ?`, 'unit/kept-lease', 'e2e/lease-renewal'],
    [`if (paused) return Infinity;`, ``, 'unit/kept-lease'],
    [`= state === 'renewing' && isOverLimit(`, `= isOverLimit(`, 'e2e/lease-limit'],
    [
      `if (state === 'renewing' && !isOverLimit(performance.now())) await`,
      `if (state === 'renewing') await`,
      'unit/kept-lease',
      'e2e/lease-limit',
    ],
    [`if (nowMs >= heldSinceMs + leaseMs) lose(`, `if (false as boolean) lose(`, 'unit/kept-lease', 'e2e/lease-limit'],
  ]),
  ...checksOf('server/waiting-room', [
    [`withinMs <= 0 || cancelled.aborted`, `cancelled.aborted`, 'unit/waiting-room'],
    [`cancelled.aborted || count >= mostWaiting`, `count >= mostWaiting`, 'unit/waiting-room'],
    [` || count >= mostWaiting) return`, `) return`, 'unit/waiting-room'],
    [`if (!running.has(key)) moved(key, nowMs);`, `moved(key, nowMs);`, 'unit/waiting-room'],
    [`count === 0 || isLooking || timer`, `count === 0 || timer`, 'unit/waiting-room'],
    [`if (others?.delete(one) !== true) return;`, ``, 'unit/waiting-room'],
  ]),
  ...checksOf('server/sealed-transaction', [
    [`if (sealed) return (run = tooLate(operation));`, ``, 'unit/sealed-transaction'],
    [`if (sealed) return tooLate(operation);`, ``, 'unit/sealed-transaction'],
    [`if (name.startsWith('$') && !OFFERED.has(name)) {`, `if (false as boolean) {`, 'unit/sealed-transaction'],
    [`if (OFFERED.has(name)) refuseTransactionControl(operation, values);`, ``, 'unit/sealed-transaction'],
    [`if (unfinished.size > 0) throw`, `if (false as boolean) throw`, 'unit/sealed-transaction'],
  ]),
  ...checksOf('server/steps/journal', [
    [`if (used.has(name)) throw`, `if (false as boolean) throw`, 'unit/journal'],
    [`step !== undefined && (step.name !== name || step.kind !== kind)`, `false as boolean`, 'unit/journal'],
    [`if (results.length > MOST_RESULT_BYTES) {`, `if (false as boolean) {`, 'unit/journal', 'e2e/phases'],
  ]),
  ...checksOf('server/steps/steps', [
    [`if (await store.recordStepIfHeld(lease.claim(), draft)) return;`, `return;`, 'e2e/phases-overtaken'],
    [`if (result === undefined) throw lost();`, ``, 'e2e/attempt-ends'],
    [`if (settlement.recoveryPoint === draft.recoveryPoint) return;`, ``, 'e2e/phase-commits'],
    [`if (lease.signal().aborted) throw lost();`, ``, 'e2e/phases-overtaken'],
  ]),
  ...checksOf('policies/assert-servable', [
    [`if (policy === undefined) return`, `if (false as boolean) return`, 'unit/policy-servable'],
    [`if (unprotected && !policy.unprotectedStream) {`, `if (false as boolean) {`, 'unit/policy-servable'],
    [`responseStream && policy.level !== 'NO_SIDE_EFFECTS'`, `responseStream`, 'unit/policy-servable'],
    [`if (policy.key !== 'IGNORED' && !policy.requestKnown) {`, `if (false as boolean) {`, 'unit/policy-servable'],
    [`if (faults.length > 0) throw`, `if (false as boolean) throw`, 'unit/policy-servable'],
  ]),
];
