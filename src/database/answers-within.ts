import { endsWithin } from '../ends-within';
import type { PrismaClient } from '../gen/prisma/client';

/** Whether a database answers within `ms` milliseconds. Never rejects. */
export async function answersWithin(ms: number, client: PrismaClient): Promise<boolean> {
  try {
    return await endsWithin(ms, client.$queryRaw`SELECT 1`);
  } catch {
    return false;
  }
}
