import { encodeResult, openJournal } from '../../src/idempotency/server/steps/journal';

/** A journal in which these steps are stored. */
function stored(...steps: readonly (readonly ['phase' | 'effect', string, unknown?])[]): Uint8Array {
  const journal = openJournal(undefined);
  let results: Uint8Array = Buffer.alloc(0);
  for (const [kind, name, ...value] of steps) {
    journal.next(kind, name);
    const draft = journal.with({ kind, name, result: value.length === 0 ? undefined : encodeResult(name, value[0]) });
    journal.stored(draft);
    results = draft.results;
  }
  return results;
}

describe('the steps of a request (design 4.10)', () => {
  it('are nothing at first: the key may be given back', () => {
    expect(openJournal(undefined).isStarted()).toBe(false);
  });

  it('count only when they are stored', () => {
    const journal = openJournal(undefined);
    const draft = journal.with({ kind: 'phase', name: 'draft', result: encodeResult('draft', 1) });
    expect(journal.isStarted()).toBe(false);
    journal.stored(draft);
    expect(journal.isStarted()).toBe(true);
  });

  it('are resumed with what was stored, in their order', () => {
    const journal = openJournal(stored(['phase', 'draft', { id: 7n }], ['effect', 'charge']));
    expect(journal.isStarted()).toBe(true);
    expect(journal.next('phase', 'draft')).toEqual({ stored: { value: { id: 7n } }, begun: true });
    expect(journal.next('effect', 'charge')).toEqual({ stored: undefined, begun: true });
    expect(journal.next('effect', 'notify')).toEqual({ stored: undefined, begun: false });
  });

  it('whose result is undefined are done all the same', () => {
    const journal = openJournal(stored(['phase', 'draft', undefined]));
    expect(journal.next('phase', 'draft')).toEqual({ stored: { value: undefined }, begun: true });
  });

  it('a noted result is stored with the next step', () => {
    const journal = openJournal(stored(['effect', 'charge']));
    journal.next('effect', 'charge');
    journal.note('charge', encodeResult('charge', 'ok'));
    const { results } = journal.with({ kind: 'phase', name: 'record', result: encodeResult('record', null) });
    const next = openJournal(results);
    expect(next.next('effect', 'charge').stored).toEqual({ value: 'ok' });
    expect(next.next('phase', 'record').stored).toEqual({ value: null });
  });

  it.each([
    ['another name', [['phase', 'other']], 'phase other: what is stored for this key has phase draft in its place'],
    ['another kind', [['effect', 'draft']], 'effect draft: what is stored for this key has phase draft in its place'],
    [
      'a name twice',
      [
        ['phase', 'draft'],
        ['effect', 'draft'],
      ],
      'effect draft: this attempt has used the name already',
    ],
    ['no name', [['phase', '']], 'phase "": expected'],
    ['a name with a space', [['phase', 'a b']], 'phase "a b": expected'],
  ] as const)('%s is an error that names it', (_, steps, told) => {
    const journal = openJournal(stored(['phase', 'draft', 1], ['effect', 'charge']));
    const take = (): void => steps.forEach(([kind, name]) => journal.next(kind, name));
    expect(take).toThrow(
      expect.objectContaining({ name: 'StepOrderError', message: expect.stringContaining(told) as string }) as Error,
    );
  });

  it('have recovery points that differ for every step and its begin', () => {
    const journal = openJournal(undefined);
    const points = [
      journal.with({ kind: 'phase', name: 'charge', result: encodeResult('charge', 1) }).recoveryPoint,
      journal.with({ kind: 'effect', name: 'charge', result: undefined }).recoveryPoint,
      journal.with({ kind: 'phase', name: 'charge:begun', result: encodeResult('charge', 1) }).recoveryPoint,
      journal.with({ kind: 'effect', name: 'notify', result: undefined }).recoveryPoint,
    ];
    expect(new Set(points).size).toBe(points.length);
  });

  it('take no more than the limit, and what is thrown says what to do', () => {
    const journal = openJournal(undefined);
    const large = encodeResult('report', 'x'.repeat(300_000));
    expect(() => journal.with({ kind: 'phase', name: 'report', result: large })).toThrow(
      /^phase report: the results of this request take \d+ bytes, more than 262144; store what is large/,
    );
  });
});
