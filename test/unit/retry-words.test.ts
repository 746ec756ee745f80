import { Metadata, status } from '@grpc/grpc-js';
import { readFailure } from '../../src/idempotency/client/failure';
import { reject, StatusError } from '../../src/idempotency/errors';
import { answerOf } from '../../src/idempotency/server/answer';
import { halfFinishedError } from '../../src/idempotency/server/half-finished-error';
import { wireReply, withPause } from '../../src/idempotency/server/reply';
import { statusErrorStatus } from '../../src/idempotency/wire/error-details';

it.each([status.UNAVAILABLE, status.INTERNAL, status.NOT_FOUND])(
  'the caller of a half-finished request is never told not to come again, with %i',
  (code) => {
    const error = halfFinishedError(new StatusError(code, 'away', [], undefined, 'never'));
    const { status: told } = wireReply(withPause({ kind: 'status', error }, 5_000));
    expect(told.metadata?.get('grpc-retry-pushback-ms')).toEqual(['5000']);
    expect([told.code, error.cause]).toEqual([
      code === status.NOT_FOUND ? status.UNAVAILABLE : code,
      expect.any(StatusError),
    ]);
  },
);

it.each([status.ABORTED, status.RESOURCE_EXHAUSTED])('a recorded %i stays, whatever its own details say', (code) => {
  const details = new Metadata();
  const asks = statusErrorStatus(new StatusError(code, 'x', [], undefined, { afterMs: 10 }));
  for (const value of asks.metadata.get('grpc-status-details-bin')) details.add('grpc-status-details-bin', value);
  const answer = answerOf(reject(new StatusError(code, 'x'), details), () => Buffer.of());
  const { status: told } = wireReply({ kind: 'answer', answer, replayed: true, expiresAt: new Date() });
  const metadata = told.metadata;
  metadata.set('content-type', 'application/grpc');
  expect(readFailure({ code, details: 'x', metadata }, false)).toEqual({ kind: 'final' });
  metadata.remove('idempotent-replayed');
  expect(readFailure({ code, details: 'x', metadata }, false).kind).toBe('transient');
});
