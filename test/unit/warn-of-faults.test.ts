import { warnOfFaults } from '../../src/idempotency/server/warn-of-faults';

describe('a server to which nobody listens', () => {
  const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  afterEach(() => warned.mockClear());
  afterAll(() => warned.mockRestore());

  it('warns of faults, with their cause', () => {
    const error = new Error('no partition of relation');
    warnOfFaults({ type: 'fault', path: '/parcels.v1/Ship', what: 'a key could not be claimed', error });
    expect(warned).toHaveBeenCalledWith('/parcels.v1/Ship: a key could not be claimed', {
      type: 'IdempotencyFault',
      detail: error.stack,
    });
  });

  it('warns of a fault without a cause', () => {
    warnOfFaults({ type: 'fault', path: '', what: 'no complete', error: undefined });
    expect(warned).toHaveBeenCalledWith(': no complete', { type: 'IdempotencyFault' });
  });

  it('keeps everything else to itself', () => {
    warnOfFaults({ type: 'fenced', path: '/parcels.v1/Ship' });
    expect(warned).not.toHaveBeenCalled();
  });
});
