import { Metadata, status } from '@grpc/grpc-js';
import { reject, StatusError } from '../../src/idempotency/index';
import { answerOf } from '../../src/idempotency/server/answer';
import { type Reply, wireReply } from '../../src/idempotency/server/reply';

const CODE = status.FAILED_PRECONDITION;

/** A rejection as it was recorded. */
function rejected(reason: string, trailers?: Metadata): Extract<Reply, { kind: 'answer' }> {
  const error = new StatusError(CODE, 'no', [], { reason, domain: 'bank', metadata: { card: '4242' } });
  return { kind: 'answer', replayed: false, answer: answerOf<never>(reject(error, trailers), () => Buffer.of()) };
}

describe('the reason that the log is told', () => {
  it('is that of a recorded rejection', () => {
    expect(wireReply(rejected('CARD_DECLINED'))).toMatchObject({ reason: 'CARD_DECLINED', rejected: true });
    expect(wireReply({ ...rejected('CARD_DECLINED'), replayed: true })).toMatchObject({ reason: 'CARD_DECLINED' });
  });

  it('is no longer than a reason may be, whoever made it', () => {
    const long = 'A'.repeat(100);
    expect(wireReply(rejected(long)).reason).toBe('A'.repeat(63));
    const thrown = new StatusError(CODE, 'no', [], { reason: long, domain: 'bank' });
    expect(wireReply({ kind: 'status', error: thrown }).reason).toBe('A'.repeat(63));
  });

  it('is none where the details are of another kind, and nothing breaks', () => {
    const trailers = new Metadata();
    trailers.set('grpc-status-details-bin', Buffer.from('no protobuf'));
    expect(wireReply(rejected('CARD_DECLINED', trailers))).toMatchObject({ reason: undefined, rejected: true });
  });

  it('is that of the lost claim where the answer is another attempt’s', () => {
    const wire = wireReply({ ...rejected('CARD_DECLINED'), reason: 'CLAIM_LOST' });
    expect(wire.reason).toBe('CLAIM_LOST');
    expect(wire.rejected).toBeUndefined();
  });

  it('is none of a success', () => {
    const answer = { code: status.OK, message: '', response: Buffer.of(), trailers: undefined };
    const wire = wireReply({ kind: 'answer', replayed: false, answer });
    expect(wire.reason).toBeUndefined();
    expect(wire.rejected).toBeUndefined();
  });
});
