import { startedBy } from '../stored-steps';
import type { SqlClient } from './database';
import { columnText } from '../wire/recorded-trailers';
import { pauseAfterMs } from './attempts';
import type { HeldClaim, Place, Renewal, RenewalResult } from './outcomes';
import { END_LEASES_IF_HELD, PUBLISH_IF_HELD, RELEASE_IF_HELD, RENEW_IF_HELD, SELECT_STILL_HELD } from './sql/lease';
import { SELECT_STILL_RUNNING } from './sql/look-up';

/** Where a record is, and under which token it is held. */
export type OwnedPlace = Pick<HeldClaim, 'bucket' | 'id' | 'ownerToken'>;

/** Prolongs leases. What was not prolonged is looked at again: a row in somebody's hand is not a lost one. */
export async function renewIfHeld(records: SqlClient, renewals: readonly Renewal[]): Promise<readonly RenewalResult[]> {
  const held = renewals.map(({ claim, leaseMs }) => ({ ...asRow(claim), leaseMs }));
  const renewed = await tokensOf(records, RENEW_IF_HELD, held);
  const missed = held.filter(({ token }) => !renewed.has(token));
  const stillHeld = missed.length === 0 ? new Set<string>() : await tokensOf(records, SELECT_STILL_HELD, missed);
  return held.map(({ token }) => (renewed.has(token) ? 'renewed' : stillHeld.has(token) ? 'busy' : 'lost'));
}

/** Ends leases at once and takes the tokens away. Returns how many were still held. */
export async function endLeasesIfHeld(records: SqlClient, claims: readonly OwnedPlace[]): Promise<number> {
  return (await tokensOf(records, END_LEASES_IF_HELD, claims.map(asRow))).size;
}

/**
 * Ends a lease that an outage cut short, and lets the request be for a while. Returns for how long, milliseconds; undefined
 * when the claim was no longer held.
 */
export async function pauseIfHeld(records: SqlClient, claim: HeldClaim): Promise<number | undefined> {
  // The attempts that died before the first step are not counted; without a stored step this one made it.
  const counted = claim.results === undefined ? 1 : claim.attempt - startedBy(claim.results) + 1;
  const pauseMs = pauseAfterMs(counted);
  const ended = await tokensOf(records, END_LEASES_IF_HELD, [{ ...asRow(claim), leaseMs: pauseMs }]);
  return ended.size > 0 ? pauseMs : undefined;
}

/** Says what a running request is about. False when the claim was no longer held. */
export async function publishIfHeld(
  records: SqlClient,
  { bucket, id, ownerToken }: HeldClaim,
  resource: string,
): Promise<boolean> {
  const rows = await records.$queryRawUnsafe<unknown[]>(
    PUBLISH_IF_HELD,
    ...[bucket, id, ownerToken, columnText(resource)],
  );
  return rows.length > 0;
}

/**
 * Gives back the key of an attempt that stored nothing, or, where an earlier one has, ends the lease and takes the attempt
 * off the count. False when the claim was no longer held.
 */
export async function releaseIfHeld(records: SqlClient, claim: OwnedPlace): Promise<boolean> {
  const { bucket, id, ownerToken } = claim;
  const rows = await records.$queryRawUnsafe<unknown[]>(RELEASE_IF_HELD, bucket, id, ownerToken);
  if (rows.length > 0) return true;
  return (await tokensOf(records, END_LEASES_IF_HELD, [{ ...asRow(claim), unused: 1 }])).size > 0;
}

/** Those among the places where an attempt still runs. */
export async function stillRunning(records: SqlClient, places: readonly Place[]): Promise<readonly Place[]> {
  const rows = await records.$queryRawUnsafe<{ id: string }[]>(
    SELECT_STILL_RUNNING,
    JSON.stringify(places.map(({ bucket, id }) => ({ bucket, id }))),
  );
  const running = new Set(rows.map(({ id }) => id));
  return places.filter(({ id }) => running.has(id));
}

function asRow({ bucket, id, ownerToken }: OwnedPlace) {
  return { bucket, id, token: ownerToken };
}

async function tokensOf(records: SqlClient, query: string, held: readonly object[]): Promise<ReadonlySet<string>> {
  const rows = await records.$queryRawUnsafe<{ token: string }[]>(query, JSON.stringify(held));
  return new Set(rows.map(({ token }) => token));
}
