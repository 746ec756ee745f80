import { type InterceptorOptions, propagate } from '@grpc/grpc-js';
import { callDeadline, deadlineIn, isParentCancelled } from '../../src/idempotency/client/call-deadline';

type Parent = NonNullable<InterceptorOptions['parent']>;

const options = (given: Partial<InterceptorOptions>): InterceptorOptions => ({
  method_definition: {
    path: '/things.v1.Things/Touch',
    requestStream: false,
    responseStream: false,
    requestSerialize: (bytes: Buffer) => bytes,
    responseDeserialize: (bytes: Buffer) => bytes,
  },
  ...given,
});

/** Of a served call, only what deadlines need. */
const parent = (cancelled: boolean, leftMs = Infinity): Parent =>
  ({ cancelled, getDeadline: () => Date.now() + leftMs }) as unknown as Parent;

const leftOf = (given: Partial<InterceptorOptions>): number => callDeadline(options(given), 5_000).remainingMs();

test('the soonest of the deadlines counts', () => {
  expect(leftOf({})).toBeGreaterThan(4_000);
  expect(leftOf({ deadline: Date.now() + 60_000 })).toBeLessThanOrEqual(5_000);
  expect(leftOf({ deadline: Date.now() + 3_000 })).toBeLessThanOrEqual(3_000);
  expect(leftOf({ deadline: new Date(Date.now() + 3_000) })).toBeLessThanOrEqual(3_000);
  expect(leftOf({ deadline: Infinity, parent: parent(false, 2_000) })).toBeLessThanOrEqual(2_000);
  expect(leftOf({ parent: parent(false) })).toBeGreaterThan(4_000);
});

test('a deadline does not move when somebody sets the clock', () => {
  const deadline = deadlineIn(1_000);
  const now = jest.spyOn(Date, 'now').mockReturnValue(0);
  expect(deadline.remainingMs()).toBeGreaterThan(0);
  now.mockReturnValue(1e15);
  expect(deadline.remainingMs()).toBeGreaterThan(0);
  now.mockRestore();
});

test('what the propagation flags leave out is not inherited', () => {
  const cancelled = parent(true, 2_000);
  expect(isParentCancelled(options({}))).toBe(false);
  expect(isParentCancelled(options({ parent: parent(false) }))).toBe(false);
  expect(isParentCancelled(options({ parent: cancelled }))).toBe(true);
  expect(isParentCancelled(options({ parent: cancelled, propagate_flags: propagate.DEADLINE }))).toBe(false);
  expect(leftOf({ parent: cancelled, propagate_flags: propagate.CANCELLATION })).toBeGreaterThan(4_000);
});
