/** A promise that a test resolves. */
export interface Deferred<Value> {
  readonly promise: Promise<Value>;
  resolve(value: Value): void;
}

/** Pending until `resolve`. */
export function deferred<Value = void>(): Deferred<Value> {
  let resolve = (_: Value): void => undefined;
  const promise = new Promise<Value>((done) => (resolve = done));
  return { promise, resolve: (value) => resolve(value) };
}

/** Resolves when a signal fires, or has. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
