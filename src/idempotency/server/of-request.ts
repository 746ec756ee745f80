import type { ServerEvent, ServerEventListener } from '../events';

/** What has a line in the log of its own: by the key of its request it is found there. */
const TOLD_APART = ['fault', 'too_large', 'execution_limit', 'settled', 'lease_ended', 'parked'] as const;

type ToldApart = Extract<ServerEvent, { type: (typeof TOLD_APART)[number] }>;

/** Passes on what happens to one request, with its key where a log has a line for it. */
export function ofRequest(onEvent: ServerEventListener, requestId: string | undefined): ServerEventListener {
  if (requestId === undefined) return onEvent;
  return (event) => onEvent(isToldApart(event) ? { ...event, requestId } : event);
}

function isToldApart(event: ServerEvent): event is ToldApart {
  return TOLD_APART.some((type) => type === event.type);
}
