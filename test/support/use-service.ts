import { type AuthorizationRequest, createStandInAuthorizer } from '../../src/payments/authorizer';
import { createTestDatabase, type TestDatabase } from './postgres';
import { startTestService, type TestService, type TestServiceOptions } from './service';
import { createStockClient, type StockClient } from './stock-client';

/** What the tests of one `describe` work with. The fields are there while its tests run. */
export interface ServiceInUse {
  readonly database: TestDatabase;
  readonly service: TestService;
  readonly client: StockClient;
  /** What the authorizer was asked: how often a handler got that far. */
  readonly authorizations: readonly AuthorizationRequest[];
}

/** Starts a service on a database of its own before the tests of a `describe`, and removes both after them. */
export function useService(
  options: Pick<TestServiceOptions, 'descriptorSet' | 'authorizer' | 'environment' | 'observeEveryMs'> = {},
): ServiceInUse {
  const authorizations: AuthorizationRequest[] = [];
  const inUse = { authorizations } as unknown as { -readonly [Name in keyof ServiceInUse]: ServiceInUse[Name] };
  const authorizer = options.authorizer ?? createStandInAuthorizer();

  beforeAll(async () => {
    inUse.database = await createTestDatabase();
    inUse.service = await startTestService({
      ...options,
      connectionString: inUse.database.connectionString,
      authorizer: {
        ...authorizer,
        authorize: (request, call) => {
          authorizations.push(request);
          return authorizer.authorize(request, call);
        },
      },
    });
    inUse.client = createStockClient(inUse.service.grpcPort);
  });

  afterAll(async () => {
    inUse.client.close();
    await inUse.service.stop();
    await inUse.database.drop();
  });

  return inUse;
}
