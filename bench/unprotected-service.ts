import type { sendUnaryData, ServerUnaryCall, UntypedServiceImplementation } from '@grpc/grpc-js';
import type { PrismaClient } from '../src/gen/prisma/client';
import type {
  CreatePaymentRequest,
  CreatePaymentResponse,
  GetPaymentRequest,
} from '../src/gen/proto/payments/v1/payments';
import { perform, read } from './handlers';

/** Long enough for 64 calls that share ten connections. */
const TRANSACTION = { maxWait: 30_000, timeout: 30_000 };

/** The service as it is written without us: each call in one interactive transaction. */
export function unprotectedService(prisma: PrismaClient): UntypedServiceImplementation {
  return {
    createPayment: (
      { request }: ServerUnaryCall<CreatePaymentRequest, CreatePaymentResponse>,
      callback: sendUnaryData<CreatePaymentResponse>,
    ) =>
      answer(
        callback,
        prisma.$transaction((tx) => perform(tx, request), TRANSACTION),
      ),
    getPayment: (
      { request }: ServerUnaryCall<GetPaymentRequest, CreatePaymentResponse>,
      callback: sendUnaryData<CreatePaymentResponse>,
    ) => answer(callback, read(prisma, request.paymentId)),
  };
}

function answer<Response>(callback: sendUnaryData<Response>, response: Promise<Response>): void {
  response.then(
    (message) => callback(null, message),
    (error: unknown) => callback({ details: String(error) }),
  );
}
