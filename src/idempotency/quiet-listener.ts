/**
 * Keeps a listener from breaking what it listens to: what it throws becomes a process warning. A call whose claim is held
 * must not hang because a metric could not be counted.
 */
export function quietListener<Event>(listener: (event: Event) => void): (event: Event) => void {
  return (event) => {
    try {
      listener(event);
    } catch (error) {
      const { message, stack = '' } = error instanceof Error ? error : new Error(String(error));
      process.emitWarning(message, { type: 'ListenerFailed', detail: stack });
    }
  };
}
