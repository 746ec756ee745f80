import { type FaultKind, planFaults } from '../chaos/plan';

describe('what chaos plans', () => {
  it('is the same for the same seed, and another for another', () => {
    expect(planFaults(7, 30_000, 3)).toEqual(planFaults(7, 30_000, 3));
    expect(planFaults(8, 30_000, 3)).not.toEqual(planFaults(7, 30_000, 3));
  });

  it('is every kind of fault, in order, in its time, for processes that there are', () => {
    const planned = planFaults(1, 120_000, 2);
    const times = planned.map(({ atMs }) => atMs);
    const kinds = new Set<FaultKind>(planned.map(({ fault }) => fault.kind));
    expect([...kinds].sort()).toEqual([
      ...['callers cut', 'card network killed', 'commits lost', 'database restarted', 'database silent'],
      ...['service frozen', 'service killed'],
    ]);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(Math.max(...times)).toBeLessThanOrEqual(120_000);
    expect(planned.length).toBeGreaterThan(80);
    const processes = planned.map(({ fault }) => ('process' in fault ? fault.process : 0));
    expect([...new Set(processes)].sort()).toEqual([0, 1]);
  });
});
