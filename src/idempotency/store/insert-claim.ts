import { randomUUID } from 'node:crypto';
import type { SqlClient } from './database';
import { provesRollback } from './database-error';
import { createNaturalBatch, type NaturalBatch } from './natural-batch';
import type { ClaimRequest } from './outcomes';
import { INSERT_CLAIM, INSERT_CLAIMS } from './sql/claim';

/** A claim to insert. */
export interface NewClaim {
  readonly request: ClaimRequest;
  /** `recordId` of the request. */
  readonly id: string;
  readonly methodId: number;
  /** What it owns the record with where it takes it over. Every INSERT has a token of its own. */
  readonly takeoverToken: string;
  readonly instance: string;
  /**
   * The tokens of statements whose answers were lost: a record with one of them is this call's own. One that is not
   * granted is never used, so a record that is made late revives nobody, and can be given back at any time.
   */
  readonly doubtful: Set<string>;
}

/** A claim that was inserted; undefined where there is a record, or the key's date forbids one. */
export type InsertedClaim = { readonly ownerToken: string; readonly createdAtMs: number } | undefined;

/** Inserts claims, those that come at once in one statement. */
export function createClaimInserts(records: SqlClient): NaturalBatch<NewClaim, InsertedClaim> {
  return createNaturalBatch({
    runOne: (claim) => insertOne(records, claim),
    runAll: (claims) => insertAll(records, claims),
  });
}

/** Sends a statement of claims with their tokens, which are in doubt where it fails and may have been carried out. */
export async function doubting<Rows>(
  sent: readonly { readonly claim: NewClaim; readonly ownerToken: string }[],
  send: () => Promise<Rows>,
): Promise<Rows> {
  try {
    return await send();
  } catch (error) {
    if (!provesRollback(error)) for (const { claim, ownerToken } of sent) claim.doubtful.add(ownerToken);
    throw error;
  }
}

async function insertOne(records: SqlClient, claim: NewClaim): Promise<InsertedClaim> {
  const { request, id, methodId, instance } = claim;
  const { policy, key, scope, fingerprint, message } = request;
  const ownerToken = randomUUID();
  const values = [key.bucket, id, key.dated?.atMs ?? null, policy.maxKeyAgeMs, policy.leaseMs, methodId, ownerToken];
  const [row] = await doubting([{ claim, ownerToken }], () =>
    records.$queryRawUnsafe<{ createdAtMs: number }[]>(
      INSERT_CLAIM,
      ...values,
      ...[fingerprint, scope, key.text, instance, message ?? null],
    ),
  );
  return row === undefined ? undefined : { ownerToken, createdAtMs: row.createdAtMs };
}

async function insertAll(records: SqlClient, claims: readonly NewClaim[]): Promise<readonly InsertedClaim[]> {
  const sent = claims.map((claim) => ({ claim, ownerToken: randomUUID() }));
  const rows = await doubting(sent, () =>
    records.$queryRawUnsafe<{ token: string; createdAtMs: number }[]>(
      INSERT_CLAIMS,
      JSON.stringify(sent.map(({ claim, ownerToken }) => asRow(claim, ownerToken))),
    ),
  );
  const createdAt = new Map(rows.map(({ token, createdAtMs }) => [token, createdAtMs]));
  return sent.map(({ ownerToken }) => {
    const createdAtMs = createdAt.get(ownerToken);
    return createdAtMs === undefined ? undefined : { ownerToken, createdAtMs };
  });
}

function asRow({ request, id, methodId, instance }: NewClaim, ownerToken: string) {
  const { policy, key, scope, fingerprint, message } = request;
  return {
    ...{ bucket: key.bucket, id, datedAtMs: key.dated?.atMs ?? null, maxKeyAgeMs: policy.maxKeyAgeMs },
    ...{ leaseMs: policy.leaseMs, method: methodId, token: ownerToken, fingerprint: fingerprint.toString('hex') },
    ...{ scope, requestId: key.text, instance, request: message?.toString('base64') },
  };
}
