import { type AbandonedDrafts, startAbandonedDrafts } from './abandoned-drafts';
import type { Reconciled } from './reconciliation';

/**
 * Starts all services before the tests of a file, has each begin with one payment that is in order, and stops them after.
 * The fields of both are there while tests run.
 */
export function useAbandonedDrafts(): { readonly drafts: AbandonedDrafts; readonly used: Reconciled } {
  const [drafts, used] = [{} as AbandonedDrafts, {} as Reconciled];
  beforeAll(async () => {
    Object.assign(drafts, await startAbandonedDrafts());
    Object.assign(used, drafts.used);
  });
  beforeEach(() => drafts.startOver());
  afterAll(() => used.stop());
  return { drafts, used };
}
