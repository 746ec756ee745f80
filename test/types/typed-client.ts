import { credentials } from '@grpc/grpc-js';
import type { CreatePaymentResponse, PaymentsServiceService } from '../../src/gen/proto/payments/v1/payments';
import { type CallEnd, type CallSettings, createPromiseClient, type PromiseClient } from '../../src/idempotency/index';
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
];

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
  // @ts-expect-error: how a call ended is to be read
  void shelf.putBook({ title: 'Kürk Mantolu Madonna', copies: 1n }, { onEnd: (end) => (end.replayed = false) });
  // @ts-expect-error: there is no safe guess at the policies of a service
  void createPromiseClient(ShelfService, '', { credentials: credentials.createInsecure() });
  // @ts-expect-error: no method of a service at all
  void createPromiseClient({ putBook: { path: '/library.v1.ShelfService/PutBook' } }, '', {});
};
