import type { ServerEvent } from '../events';

/** Who listens where nobody else does: a fault becomes a process warning, so that no outage is silent. */
export function warnOfFaults(event: ServerEvent): void {
  if (event.type !== 'fault') return;
  const { path, what, error } = event;
  const detail = error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(error);
  process.emitWarning(`${path}: ${what}`, { type: 'IdempotencyFault', ...(detail === undefined ? {} : { detail }) });
}
