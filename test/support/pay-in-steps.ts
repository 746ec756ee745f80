import type { CreatePaymentRequest } from '../../src/gen/proto/payments/v1/payments';
import { type PaymentAttempt, recordPayment } from './attempt-service';
import type { TestDatabase } from './postgres';

/** Where a payment in steps can be interrupted. */
export const POINTS = ['drafted', 'begun', 'charged', 'recording'] as const;
export type Point = (typeof POINTS)[number];

/** The books of something outside that takes keys: one row a charge, however often it was asked for. */
export const CREATE_CHARGES = 'CREATE TABLE charges (key text PRIMARY KEY, times int NOT NULL, amount bigint NOT NULL)';

/** A handler that drafts, charges outside and records; it waits for `reached` at every point. */
export function payInSteps(database: Pick<TestDatabase, 'rows'>, reached: (point: Point) => Promise<void>) {
  return async (request: CreatePaymentRequest, attempt: PaymentAttempt) => {
    const draft = await attempt.phase('draft', async () => ({ amountMinor: request.amountMinor }));
    await reached('drafted');
    await attempt.effect('charge', async (key) => {
      await reached('begun');
      await database.rows(
        `INSERT INTO charges VALUES ($1, 1, $2) ON CONFLICT (key) DO UPDATE SET times = charges.times + 1`,
        [key, String(draft.amountMinor)],
      );
      await reached('charged');
    });
    return attempt.complete(async (tx) => {
      const response = await recordPayment(tx, request, attempt);
      await reached('recording');
      return response;
    });
  };
}
