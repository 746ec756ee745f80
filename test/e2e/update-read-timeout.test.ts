import { credentials, type sendUnaryData, Server, status } from '@grpc/grpc-js';
import { Payment, PaymentsServiceService } from '../../src/gen/proto/payments/v1/payments';
import { listen } from '../../src/grpc-server';
import { StatusError } from '../../src/idempotency/index';
import { statusErrorStatus } from '../../src/idempotency/wire/error-details';
import { createPaymentsClient } from '../../src/payments/payments-client';

it('an update whose first answer was lost is compared, also where GetPayment has a shorter time of its own', async () => {
  const changed = new StatusError(status.ABORTED, 'changed', [], { reason: 'ETAG_MISMATCH', domain: 'payments.v1' });
  const { updatePayment, getPayment } = PaymentsServiceService;
  let updates = 0;
  const server = new Server();
  server.addService(
    { updatePayment, getPayment },
    {
      updatePayment: (_: unknown, answer: sendUnaryData<unknown>) => {
        updates += 1;
        if (updates === 1) answer({ code: status.UNAVAILABLE, details: 'written, and the answer was lost' });
        else answer(statusErrorStatus(changed));
      },
      getPayment: (_: unknown, answer: sendUnaryData<unknown>) =>
        answer(null, { payment: Payment.create({ paymentId: 'p', etag: 'new', metadata: { a: '1' } }) }),
    },
  );
  const payments = createPaymentsClient(`127.0.0.1:${await listen(server, '127.0.0.1', 0)}`, {
    credentials: credentials.createInsecure(),
    methods: { '/payments.v1.PaymentsService/GetPayment': { timeoutMs: 2_000, attemptTimeoutMs: 2_000 } },
  });
  try {
    const update = payments.updatePayment({ paymentId: 'p', etag: 'old', metadata: { a: '1' } });
    await expect(update).resolves.toMatchObject({ payment: { etag: 'new' } });
  } finally {
    payments.close();
    server.forceShutdown();
  }
});
