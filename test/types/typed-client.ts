import { credentials } from '@grpc/grpc-js';
import type { CreatePaymentResponse, PaymentsServiceService } from '../../src/gen/proto/payments/v1/payments';
import {
  type AnswerWithTrailers,
  type CallEnd,
  type CallSettings,
  createPromiseClient,
  type PromiseClient,
  type PromiseMethod,
  withTrailers,
} from '../../src/idempotency/index';
import type { PaymentsClient } from '../../src/payments/payments-client';
import { type Book, type Receipt, ShelfService } from '../support/foreign-service';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

type Holds<Claim extends true> = Claim;
type Shelf = PromiseClient<typeof ShelfService>;

/** The methods of a client and what they take and give. */
export type Claims = [
  Holds<Same<keyof Shelf, 'putBook' | 'findBook' | 'close'>>,
  Holds<Same<Parameters<Shelf['putBook']>, [request: Book, settings?: CallSettings | undefined]>>,
  Holds<Same<ReturnType<Shelf['putBook']>, Promise<Receipt>>>,
  Holds<Same<ReturnType<PaymentsClient['createPayment']>, Promise<CreatePaymentResponse>>>,
  Holds<Same<keyof PaymentsClient, keyof PaymentsServiceService | 'close'>>,
  Holds<Same<Parameters<NonNullable<CallSettings['onEnd']>>, [end: CallEnd]>>,
  Holds<Same<ReturnType<typeof putBookOf>, PromiseMethod<Book, AnswerWithTrailers<Receipt>>>>,
  Holds<Same<AnswerWithTrailers<Receipt>['response'], Receipt>>,
];

/** Nothing is said here of what comes out: that is to be found out from what goes in. */
export const putBookOf = (shelf: Shelf) => withTrailers(shelf.putBook);

/**
 * What the compiler must say of the typed client; never called. `tsc --noEmit` is what runs these tests: a line that is
 * marked as an error and compiles is one itself.
 */
export const typedClient = (shelf: Shelf, settings: CallSettings): void => {
  void shelf.putBook({ title: 'Kürk Mantolu Madonna', copies: 1n }, settings);
  // @ts-expect-error: a field is missing
  void shelf.putBook({ title: 'Kürk Mantolu Madonna' });
  // @ts-expect-error: a 64-bit number is a bigint
  void shelf.putBook({ title: 'Kürk Mantolu Madonna', copies: 1 });
  // @ts-expect-error: there is no such field
  void shelf.putBook({ title: 'Kürk Mantolu Madonna', copies: 1n, pages: 160 });
  // @ts-expect-error: a stream has no promise
  void shelf.watchShelf;
  // @ts-expect-error: there is no such method
  void shelf.burnBook;
  // @ts-expect-error: there is no such setting
  void shelf.putBook({ title: 'Kürk Mantolu Madonna', copies: 1n }, { requestID: '' });
  void shelf.putBook({ title: 'Kürk Mantolu Madonna', copies: 1n }, { timeoutMs: 1_000, attemptTimeoutMs: 100 });
  // @ts-expect-error: attempts are not a call's to set
  void shelf.putBook({ title: 'Kürk Mantolu Madonna', copies: 1n }, { maxAttempts: 2 });
  // @ts-expect-error: the answer has no such field
  void shelf.putBook({ title: 'Kürk Mantolu Madonna', copies: 1n }).then(({ title }) => void title);
  const putBook = putBookOf(shelf);
  // @ts-expect-error: the response is a field of the whole answer
  void putBook({ title: 'Kürk Mantolu Madonna', copies: 1n }).then(({ shelf: number }) => void number);
  void putBook({ title: 'Kürk Mantolu Madonna', copies: 1n }).then(({ response, replayed }) => [
    response.shelf,
    replayed,
  ]);
  // @ts-expect-error: a field is missing
  void putBook({ title: 'Kürk Mantolu Madonna' });
  // @ts-expect-error: a client is not a method
  void withTrailers(shelf);
  // @ts-expect-error: how a call ended is to be read
  void shelf.putBook({ title: 'Kürk Mantolu Madonna', copies: 1n }, { onEnd: (end) => (end.replayed = false) });
  // @ts-expect-error: there is no safe guess at the policies of a service
  void createPromiseClient(ShelfService, '', { credentials: credentials.createInsecure() });
  // @ts-expect-error: no method of a service at all
  void createPromiseClient({ putBook: { path: '/library.v1.ShelfService/PutBook' } }, '', {});
};
