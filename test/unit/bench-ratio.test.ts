import { pairedRatio } from '../../bench/ratio';

describe('the ratio of pairs', () => {
  it('is their geometric mean: twice as fast and half as fast cancel out', () => {
    const threefold = pairedRatio([
      [9, 3],
      [27, 9],
      [3, 1],
    ]);
    expect(threefold.mean).toBeCloseTo(3);
    expect(threefold.low).toBeCloseTo(3);
    expect(threefold.high).toBeCloseTo(3);
  });

  it('does not see what slows both sides of a pair down', () => {
    const calm = pairedRatio([
      [80, 100],
      [88, 100],
      [84, 100],
    ]);
    const busy = pairedRatio([
      [80, 100],
      [8.8, 10],
      [0.84, 1],
    ]);
    expect(busy.mean).toBeCloseTo(calm.mean);
    expect(busy.high).toBeCloseTo(calm.high);
  });

  it("has Student's interval, checked by hand for logarithms 0, 1 and 2", () => {
    const { low, high } = pairedRatio([
      [1, 1],
      [Math.E, 1],
      [Math.E ** 2, 1],
    ]);
    expect(Math.log(low)).toBeCloseTo(1 - 4.303 / Math.sqrt(3), 3);
    expect(Math.log(high)).toBeCloseTo(1 + 4.303 / Math.sqrt(3), 3);
  });

  it('needs two pairs', () => {
    expect(() => pairedRatio([[1, 2]])).toThrow(RangeError);
  });
});
