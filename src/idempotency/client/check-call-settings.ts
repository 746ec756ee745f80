import { Metadata } from '@grpc/grpc-js';
import { faultsOfNames, kindOf } from '../option-names';
import type { CallSettings } from './typed-call';

const NAMES: ReadonlySet<string> = new Set(
  Object.keys({
    requestId: true,
    timeoutMs: true,
    attemptTimeoutMs: true,
    signal: true,
    metadata: true,
    onEnd: true,
  } satisfies Record<keyof CallSettings, true>),
);

/**
 * Checks the settings of a call, but for the key and the times. A key under another name would be none, and the call one
 * that may run twice.
 *
 * @throws TypeError that names what is at fault and what was expected
 */
export function checkCallSettings(settings: CallSettings): void {
  const isInstead = typeof settings !== 'object' || settings === null || settings instanceof Metadata;
  // An array or a map has entries, and none of these names.
  if (isInstead || Symbol.iterator in settings) {
    throw new TypeError(`settings of a call: expected an object such as { requestId }, got ${kindOf(settings)}`);
  }
  const [fault] = faultsOfNames(settings, NAMES);
  if (fault !== undefined) throw new TypeError(`settings of a call: ${fault}`);
  const { requestId, signal, metadata, onEnd } = settings;
  const expect = (isRight: boolean, name: keyof CallSettings, expected: string): void => {
    if (!isRight) throw new TypeError(`${name}: expected ${expected}, got ${kindOf(settings[name])}`);
  };
  expect(requestId === undefined || typeof requestId === 'string', 'requestId', 'a text');
  expect(signal === undefined || typeof signal?.addEventListener === 'function', 'signal', 'an AbortSignal');
  expect(metadata === undefined || typeof metadata?.clone === 'function', 'metadata', 'Metadata of grpc-js');
  expect(onEnd === undefined || typeof onEnd === 'function', 'onEnd', 'a function');
}
