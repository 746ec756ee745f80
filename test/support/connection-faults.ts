/**
 * What becomes of a statement and its connection. `before`: the server never gets it; `after`: the server has carried it
 * out, and its answer is what does not arrive. A stalled connection passes nothing on from then on, not even its end, until
 * it is let through.
 */
export type ConnectionFault = 'cut before' | 'cut after' | 'stall before' | 'stall after';

/** A fault that waits for its statement. */
export interface PlannedFault {
  /** How often it has happened. */
  times(): number;
  /** Resolves when it has happened so often; default once. */
  happened(times?: number): Promise<void>;
  /** Lets the stalled connections go on: what was kept back arrives now, late. */
  letThrough(): void;
  /** No further statement is met. */
  end(): void;
}

/** A fault that has met its statement. */
export interface MetFault {
  readonly fault: ConnectionFault;
  /** It has happened; `goOn` lets a stalled connection go on. */
  report(goOn?: () => void): void;
}

/** The faults that a test has planned, in their order. */
export interface FaultPlan {
  add(statement: string, fault: ConnectionFault, times: number): PlannedFault;
  /** The fault that a statement meets, if any; it is used up by that. */
  meet(statement: string): MetFault | undefined;
}

/** Nothing is planned at first. */
export function createFaultPlan(): FaultPlan {
  const plans: { meet(statement: string): MetFault | undefined }[] = [];
  return {
    meet: (statement) => {
      for (const plan of plans) {
        const met = plan.meet(statement);
        if (met !== undefined) return met;
      }
      return undefined;
    },
    add: (sought, fault, times) => {
      let left = times;
      let happened = 0;
      const goOns: (() => void)[] = [];
      const waiting = new Set<() => void>();
      const report = (goOn?: () => void): void => {
        happened += 1;
        if (goOn !== undefined) goOns.push(goOn);
        for (const look of waiting) look();
      };
      plans.push({
        meet: (statement) => {
          if (left === 0 || !isSought(statement, sought)) return undefined;
          left -= 1;
          return { fault, report };
        },
      });
      return {
        times: () => happened,
        happened: (count = 1) =>
          new Promise((resolve) => {
            const look = (): void => {
              if (happened >= count) resolve();
            };
            waiting.add(look);
            look();
          }),
        letThrough: () => {
          for (const goOn of goOns.splice(0)) goOn();
        },
        end: () => {
          left = 0;
        },
      };
    },
  };
}

function isSought(statement: string, sought: string): boolean {
  return sought === 'COMMIT' ? statement.trim() === sought : statement.includes(sought);
}
