import { status } from '@grpc/grpc-js';
import { Rejection } from '../errors';
import type { RecordedAnswer } from '../store/store';
import { statusErrorStatus } from '../wire/error-details';
import { assertFitsHeaders } from '../wire/header-block';
import { recordTrailers } from '../wire/recorded-trailers';

/**
 * What is recorded of what the function of `complete` returned.
 *
 * @throws for a rejection that could not be sent, so that nothing is committed which nobody can be told
 */
export function answerOf<Response>(
  returned: Response | Rejection,
  serialize: (response: Response) => Buffer,
): RecordedAnswer {
  if (!(returned instanceof Rejection)) {
    return { code: status.OK, message: '', response: serialize(returned), trailers: undefined };
  }
  const { code, details, metadata } = statusErrorStatus(returned.error);
  if (returned.trailers !== undefined) {
    for (const name of Object.keys(returned.trailers.getMap())) {
      metadata.remove(name);
      for (const value of returned.trailers.get(name)) metadata.add(name, value);
    }
  }
  assertFitsHeaders(details, metadata);
  return { code, message: details, response: undefined, trailers: recordTrailers(metadata, details) };
}
