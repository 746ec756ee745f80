import { createHash, timingSafeEqual } from 'node:crypto';

/** What a page belongs to: a token of one list says nothing in another. */
export interface ListedBy {
  /** The account that lists. */
  readonly scope: string;
  /** The order that it asked for; empty for all. */
  readonly orderId: string;
}

const ID_BYTES = 16;
const CHECK_BYTES = 8;

/**
 * Names the place after a payment, so that a page begins there whatever was paid meanwhile: its id, and a check that ties
 * it to the list. The check finds accidents, not forgers; a forged token shows nothing that its list would not.
 */
export function pageToken(listedBy: ListedBy, lastPaymentId: string): string {
  const id = Buffer.from(lastPaymentId.replaceAll('-', ''), 'hex');
  return Buffer.concat([id, check(listedBy, id)]).toString('base64url');
}

/** The id of the payment that a token stands behind; undefined for a token that was not made for this list. */
export function readPageToken(listedBy: ListedBy, token: string): string | undefined {
  const bytes = Buffer.from(token, 'base64url');
  if (bytes.length !== ID_BYTES + CHECK_BYTES || bytes.toString('base64url') !== token) return undefined;
  const id = bytes.subarray(0, ID_BYTES);
  if (!timingSafeEqual(check(listedBy, id), bytes.subarray(ID_BYTES))) return undefined;
  const [, ...parts] = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/.exec(id.toString('hex')) ?? [];
  return parts.join('-');
}

function check({ scope, orderId }: ListedBy, id: Buffer): Buffer {
  const list = JSON.stringify([scope, orderId, id.toString('hex')]);
  return createHash('sha256').update(list).digest().subarray(0, CHECK_BYTES);
}
