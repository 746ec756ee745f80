import type { Metadata } from '@grpc/grpc-js';
import { readKeyText } from '../key';
import { keyFormatOf } from './call-key';
import type { ClientSettings } from './client-options';

/**
 * Checks the key of a call before anything is sent. No key at all passes: whether the method needs one is the server's to
 * say, and a call without one is sent once.
 *
 * @param metadata of the call, before `requestId` is added to it
 * @throws TypeError that says what was expected and never repeats the key
 */
export function checkKey(
  { policies, requestIdName }: Pick<ClientSettings, 'policies' | 'requestIdName'>,
  path: string,
  metadata: Metadata,
  requestId: string | undefined,
): void {
  const inMetadata = metadata.get(requestIdName);
  if (requestId !== undefined && inMetadata.length > 0) {
    throw new TypeError(`requestId: metadata ${requestIdName} is set too; expected one of them`);
  }
  const values = requestId === undefined ? inMetadata : [requestId];
  if (values.length === 0) return;
  const reading = readKeyText(values, keyFormatOf(policies.get(path)));
  switch (reading.kind) {
    case 'key':
      return;
    case 'missing':
      throw new TypeError(`requestId of ${path}: expected a key, got an empty text`);
    case 'malformed':
      throw new TypeError(`requestId of ${path}: ${reading.description}`);
  }
}
