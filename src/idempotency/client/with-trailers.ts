import type { CallEnd } from './call-end';
import { checkCallSettings } from './check-call-settings';
import type { CallSettings } from './typed-call';

/** A method of a promise client. */
export type PromiseMethod<Request, Response> = (request: Request, settings?: CallSettings) => Promise<Response>;

/** A response and what came with it. */
export interface AnswerWithTrailers<Response> extends CallEnd {
  readonly response: Response;
}

/**
 * Makes a method of a promise client resolve with more than its response: its trailers, whether it was replayed, until when it
 * is kept, after how many attempts, and under which key. A call that fails rejects as before, with an `IdempotencyError`,
 * which has all of that.
 *
 * @param method such as `payments.createPayment`, of any service
 */
export function withTrailers<Request, Response>(
  method: PromiseMethod<Request, Response>,
): PromiseMethod<Request, AnswerWithTrailers<Response>> {
  return async (request, settings) => {
    // What is no object would be copied as an empty one: a call without the key that it was given.
    if (settings !== undefined) checkCallSettings(settings);
    let end: CallEnd | undefined;
    const onEnd = (ended: CallEnd): void => {
      end = ended;
      settings?.onEnd?.(ended);
    };
    const response = await method(request, { ...settings, onEnd });
    if (end === undefined)
      throw new TypeError('withTrailers: expected a method that calls onEnd, as promise clients do');
    return { ...end, response };
  };
}
