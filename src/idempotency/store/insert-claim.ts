import type { SqlClient } from './database';
import { createNaturalBatch, type NaturalBatch } from './natural-batch';
import type { ClaimRequest } from './outcomes';
import { INSERT_CLAIM, INSERT_CLAIMS } from './sql/claim';

/** A claim to insert. */
export interface NewClaim {
  readonly request: ClaimRequest;
  /** `recordId` of the request. */
  readonly id: string;
  readonly methodId: number;
  readonly ownerToken: string;
  readonly instance: string;
}

/** Epoch milliseconds of the claim; undefined where there is a record, or the key's date forbids one. */
type CreatedAtMs = number | undefined;

/** Inserts claims, those that come at once in one statement. */
export function createClaimInserts(records: SqlClient): NaturalBatch<NewClaim, CreatedAtMs> {
  return createNaturalBatch({
    runOne: (claim) => insertOne(records, claim),
    runAll: (claims) => insertAll(records, claims),
  });
}

async function insertOne(
  records: SqlClient,
  { request, id, methodId, ownerToken, instance }: NewClaim,
): Promise<CreatedAtMs> {
  const { policy, key, scope, fingerprint, message } = request;
  const rows = await records.$queryRawUnsafe<{ createdAtMs: number }[]>(
    INSERT_CLAIM,
    key.bucket,
    id,
    key.dated?.atMs ?? null,
    policy.maxKeyAgeMs,
    policy.leaseMs,
    methodId,
    ownerToken,
    fingerprint,
    scope,
    key.text,
    instance,
    message ?? null,
  );
  return rows[0]?.createdAtMs;
}

async function insertAll(records: SqlClient, claims: readonly NewClaim[]): Promise<readonly CreatedAtMs[]> {
  const rows = await records.$queryRawUnsafe<{ token: string; createdAtMs: number }[]>(
    INSERT_CLAIMS,
    JSON.stringify(claims.map(asRow)),
  );
  const inserted = new Map(rows.map(({ token, createdAtMs }) => [token, createdAtMs]));
  return claims.map(({ ownerToken }) => inserted.get(ownerToken));
}

function asRow({ request, id, methodId, ownerToken, instance }: NewClaim) {
  const { policy, key, scope, fingerprint, message } = request;
  return {
    ...{ bucket: key.bucket, id, datedAtMs: key.dated?.atMs ?? null, maxKeyAgeMs: policy.maxKeyAgeMs },
    ...{ leaseMs: policy.leaseMs, method: methodId, token: ownerToken, fingerprint: fingerprint.toString('hex') },
    ...{ scope, requestId: key.text, instance, request: message?.toString('base64') },
  };
}
