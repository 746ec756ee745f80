// A first payment, and its retry, with a stock grpc-js client that loads the proto at run time.
// Start the service (npm start), then: node examples/first-payment.js
'use strict';
const { randomUUID } = require('node:crypto');
const { join } = require('node:path');
const grpc = require('@grpc/grpc-js');
const { loadSync } = require('@grpc/proto-loader');

const includeDirs = [join(__dirname, '..', 'proto')];
const { payments } = grpc.loadPackageDefinition(loadSync('payments/v1/payments.proto', { includeDirs, longs: String }));
const address = process.env.PAYMENTS_ADDRESS ?? '127.0.0.1:50051';
const client = new payments.v1.PaymentsService(address, grpc.credentials.createInsecure());

// Any UUID will do. A UUIDv7, as newRequestId() of grpc-idempotency makes it, is never run again, however late it comes.
const requestId = randomUUID();
const request = { orderId: `order-${requestId}`, amountMinor: '1250', currency: 'EUR', paymentMethod: 'tok_visa' };
const metadata = new grpc.Metadata();
metadata.set('request-id', requestId); // One key per intent: every attempt of this payment sends the same.

function pay(attempt, next) {
  const options = { deadline: Date.now() + 10_000 };
  let answer;
  const call = client.createPayment(request, metadata, options, (error, response) => {
    answer = error ? error.message : `payment ${response.payment.paymentId}`;
  });
  // The trailers come after the answer.
  call.on('status', ({ code, metadata: trailers }) => {
    const outcome = trailers.get('idempotent-replayed').length > 0 ? 'the recorded answer' : 'paid';
    if (code === grpc.status.OK) console.log(`attempt ${attempt}: ${outcome}, ${answer}`);
    else {
      console.error(`attempt ${attempt}: ${answer}`);
      process.exitCode = 1;
    }
    next();
  });
}

pay(1, () => pay(2, () => client.close()));
