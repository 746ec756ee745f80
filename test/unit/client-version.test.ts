import { Metadata } from '@grpc/grpc-js';
import { createClientVersions } from '../../src/idempotency/server/client-version';

const from = (userAgent?: string): Metadata => {
  const metadata = new Metadata();
  if (userAgent !== undefined) metadata.set('user-agent', userAgent);
  return metadata;
};

describe('the version of a client', () => {
  const version = createClientVersions(['shop/1.4.2', 'shop/1.4.3']);

  it.each([
    ['shop/1.4.2 grpc-node-js/1.14.5', 'shop/1.4.2'],
    ['shop/1.4.3', 'shop/1.4.3'],
    ['shop/1.4.33 grpc-node-js/1.14.5', 'other'],
    ['grpc-node-js/1.14.5 shop/1.4.2', 'other'],
    ['', 'other'],
    [undefined, 'other'],
  ])('that says %j is %s: only what is known becomes a label (case M1)', (userAgent, told) => {
    expect(version(from(userAgent))).toBe(told);
  });

  it.each([
    [['shop 1'], 'clientVersions: expected words such as shop/1.4.2, got "shop 1"'],
    [[''], 'clientVersions: expected words such as shop/1.4.2, got ""'],
    [Array.from({ length: 101 }, (_, index) => `shop/${index}`), 'clientVersions: expected at most 100, got 101'],
  ])('%# is refused where it can not be one, or where there are too many', (known, message) => {
    expect(() => createClientVersions(known)).toThrow(new RangeError(message));
  });
});
