import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { type ClientEvent, type ClientEventListener, RETRY_REASONS, STOP_REASONS } from '../idempotency/index';

/** Attempts of one call; six are the default limit. */
const ATTEMPT_BUCKETS = [0, 1, 2, 3, 4, 5, 6, 8, 12, 20];

/** Targets that get a series of their own; a program that makes up targets must not make up series (case M1). */
const MOST_TARGETS = 50;
const OTHER_TARGET = 'other';

/**
 * The client metrics of design 3.4, all of them at 0 from the start (case M2): make them once per registry and give the
 * listener to every client as its `onEvent`. Labels are bounded: reasons from a list, and targets, which are
 * configuration; never a key or a text. The budget of a target has its series once a client of that target is made.
 */
export function createClientMetrics(registry: Registry): ClientEventListener {
  const registers = [registry];
  const attempts = new Histogram({
    name: 'idempotency_client_attempts',
    help: 'Attempts that a call took, the first included; 0 where nothing was sent.',
    buckets: ATTEMPT_BUCKETS,
    registers,
  });
  const retries = new Counter({
    name: 'idempotency_client_retries_total',
    help: 'Attempts after the first, by what they followed.',
    labelNames: ['reason'],
    registers,
  });
  const refused = new Counter({
    name: 'idempotency_client_retries_refused_total',
    help: 'Calls that might have been helped by another attempt and got none, by the reason.',
    labelNames: ['reason'],
    registers,
  });
  const tokens = new Gauge({
    name: 'idempotency_client_retry_budget_tokens',
    help: 'Retries that a target may still get.',
    labelNames: ['target'],
    registers,
  });
  for (const reason of RETRY_REASONS) retries.inc({ reason }, 0);
  for (const reason of STOP_REASONS) refused.inc({ reason }, 0);

  const targets = new Set<string>();
  const targetLabel = (target: string): string => {
    if (targets.size < MOST_TARGETS) targets.add(target);
    return targets.has(target) ? target : OTHER_TARGET;
  };

  return (event: ClientEvent) => {
    switch (event.type) {
      case 'call':
        return attempts.observe(event.attempts);
      case 'retry':
        return retries.inc({ reason: event.reason });
      case 'retry_refused':
        return refused.inc({ reason: event.reason });
      case 'retry_budget':
        return tokens.set({ target: targetLabel(event.target) }, event.tokens);
      case 'native_retries':
        // For the log: it tells of a configuration, once.
        return;
    }
  };
}
