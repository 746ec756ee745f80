import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { type Asker, type Intent } from './intents';

/** What a caller does with one payment. */
interface Course {
  /** Which service it asks first. */
  readonly first: number;
  /** It asks two services at the same time, under the same key. */
  readonly twiceAtOnce: boolean;
  /** It asks once more when it knows the answer. */
  readonly onceMore: boolean;
  /** It has a part given back. */
  readonly refunds: boolean;
}

const COURSE: fc.Arbitrary<Course> = fc.record({
  ...{ first: fc.nat(99), twiceAtOnce: fc.boolean(), onceMore: fc.boolean(), refunds: fc.boolean() },
});

/** Has callers pay and give back, one payment after another each, until `enough`; resolves with everything they wanted. */
export async function runCallers(
  asker: Asker,
  { seed, callers, enough }: { readonly seed: number; readonly callers: number; readonly enough: AbortSignal },
): Promise<readonly Intent[]> {
  const intents: Intent[] = [];
  const want = async (intent: Intent, { first, twiceAtOnce, onceMore }: Course): Promise<void> => {
    intents.push(intent);
    await Promise.all([asker.ask(intent, first), ...(twiceAtOnce ? [asker.ask(intent, first + 1)] : [])]);
    if (onceMore) await asker.ask(intent, first + 2);
  };
  const run = async (caller: number): Promise<void> => {
    const courses = fc.sample(fc.noBias(COURSE), { seed: seed + caller, numRuns: 500 });
    for (let n = 0; !enough.aborted; n += 1) {
      const course = courses[n % courses.length] as Course;
      const payment = asker.pay(`order-${randomUUID()}`);
      await want(payment, course);
      if (course.refunds && payment.made !== undefined) await want(asker.refund(payment.made, 250n), course);
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, caller) => run(caller)));
  return intents;
}
