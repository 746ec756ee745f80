import { getEventListeners } from 'node:events';
import { InterceptingCall, type InterceptingListener, type Interceptor, Metadata, status } from '@grpc/grpc-js';
import { type CallEnd, newRequestId, withTrailers } from '../../src/idempotency/index';
import { BOOK, useShelf } from '../support/use-shelf';

/**
 * Makes an interceptor that never asks the server, such as a cache.
 *
 * @param start runs while the call is being made
 */
const answering =
  (start: (listener: Partial<InterceptingListener>) => void): Interceptor =>
  () => {
    let told: Partial<InterceptingListener> = {};
    return new InterceptingCall({
      start: (_, listener = {}) => start((told = listener)),
      cancelWithStatus: (code, details) => told.onReceiveStatus?.({ code, details, metadata: new Metadata() }),
      sendMessage: () => undefined,
      sendMessageWithContext: () => undefined,
      halfClose: () => undefined,
      startRead: () => undefined,
      getPeer: () => '',
      getAuthContext: () => null,
    });
  };

const succeed = (listener: Partial<InterceptingListener>): void => {
  listener.onReceiveMessage?.({ shelf: 1 });
  listener.onReceiveStatus?.({ code: status.OK, details: '', metadata: new Metadata() });
};

const refuse = (listener: Partial<InterceptingListener>): void => {
  const metadata = new Metadata();
  metadata.set('idempotent-replayed', 'true');
  listener.onReceiveMessage?.(null);
  listener.onReceiveStatus?.({ code: status.NOT_FOUND, details: 'no such book', metadata });
};

describe('a call that an interceptor of the caller answers while it is made', () => {
  const used = useShelf();

  const find = async <Result>(
    start: Parameters<typeof answering>[0],
    work: (findBook: ReturnType<typeof used.connect>['findBook']) => Promise<Result>,
  ): Promise<Result> => {
    const shelf = used.connect({ interceptors: [answering(start)] });
    try {
      return await work(shelf.findBook);
    } finally {
      shelf.close();
    }
  };

  it.each([
    ['is OK', succeed],
    ['fails', refuse],
  ])('lets go of its signal, where it %s', async (_, start) => {
    const { signal } = new AbortController();
    await find(start, (findBook) => findBook(BOOK, { signal }).catch(() => undefined));
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('is cancelled where its signal aborts in that moment', async () => {
    const abort = new AbortController();
    const found = find(
      () => abort.abort(),
      (findBook) => findBook(BOOK, { signal: abort.signal }),
    );
    await expect(found).rejects.toMatchObject({ code: status.CANCELLED });
    expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
  });

  it('tells how it ended, before its promise settles', async () => {
    const [told, requestId]: [(CallEnd | string)[], string] = [[], newRequestId()];
    const onEnd = (end: CallEnd): void => void told.push(end);
    await find(succeed, (findBook) => findBook(BOOK, { requestId, onEnd })).then(() => told.push('settled'));
    await find(refuse, (findBook) => findBook(BOOK, { onEnd })).catch(() => told.push('settled'));
    expect(told).toEqual([
      expect.objectContaining({ replayed: false, attempts: 0, requestId }),
      'settled',
      expect.objectContaining({ replayed: true, attempts: 0, requestId: undefined }),
      'settled',
    ]);
  });

  it('resolves with its trailers, of which there are none', async () => {
    const answer = await find(succeed, (findBook) => withTrailers(findBook)(BOOK));
    expect(answer).toMatchObject({ response: { shelf: 1 }, replayed: false, attempts: 0 });
    expect(answer.trailers.getMap()).toEqual({});
  });
});
