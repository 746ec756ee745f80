/**
 * Sets the clock of this process wrong, from now on: everything that asks what time it is. What only measures how long
 * something takes goes on as it was, as under an operating system whose clock is wrong.
 *
 * @param aheadMs milliseconds; negative for behind
 */
export function shiftClock(aheadMs: number): void {
  const trueNow = Date.now.bind(Date);
  const now = (): number => trueNow() + aheadMs;
  globalThis.Date = new Proxy(Date, {
    construct: (target, values: [], newTarget) =>
      Reflect.construct(target, values.length === 0 ? [now()] : values, newTarget) as Date,
    get: (target, name) => (name === 'now' ? now : (Reflect.get(target, name) as unknown)),
  });
}
