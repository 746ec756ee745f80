import { credentials } from '@grpc/grpc-js';
import { createPaymentsClient, type PaymentsClient } from '../../src/payments/payments-client';
import { type ServiceInUse, useService } from './use-service';

/** A service, and a typed client of it. The fields are there while the tests of its `describe` run. */
export interface PaymentsInUse extends ServiceInUse {
  readonly payments: PaymentsClient;
}

/** Starts both before the tests of a `describe`, and ends them after. */
export function usePaymentsClient(): PaymentsInUse {
  const inUse = useService() as { -readonly [Name in keyof PaymentsInUse]: PaymentsInUse[Name] };

  beforeAll(() => {
    const address = `127.0.0.1:${inUse.service.grpcPort}`;
    inUse.payments = createPaymentsClient(address, { credentials: credentials.createInsecure() });
  });

  afterAll(() => inUse.payments.close());

  return inUse;
}
