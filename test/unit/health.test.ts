import {
  credentials,
  makeClientConstructor,
  Server,
  ServerCredentials,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { service } from 'grpc-health-check';
import { createHealth, type Health } from '../../src/ops/health';

const NAMES = ['', 'payments.v1.PaymentsService'];

const HealthClient = makeClientConstructor(service, 'Health');
let health: Health;
let server: Server;
let client: InstanceType<typeof HealthClient>;

beforeAll(async () => {
  server = new Server();
  health = createHealth(['payments.v1.PaymentsService']);
  health.addTo(server);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  client = new HealthClient(`127.0.0.1:${port}`, credentials.createInsecure());
});

afterAll(() => {
  client.close();
  server.forceShutdown();
});

/** What a probe hears: a serving status, or the code of an error. */
function check(name: string): Promise<unknown> {
  return new Promise((resolve) => {
    const heard = (error: ServiceError | null, answer?: { readonly status: string }) =>
      resolve(error ? error.code : answer?.status);
    (client['check'] as (request: object, callback: typeof heard) => void).call(client, { service: name }, heard);
  });
}

test.each(NAMES)('%j starts as NOT_SERVING and follows', async (name) => {
  expect(await check(name)).toBe('NOT_SERVING');
  health.setServing(true);
  expect(await check(name)).toBe('SERVING');
  health.setServing(false);
  expect(await check(name)).toBe('NOT_SERVING');
});

test('an unknown name is NOT_FOUND', async () => {
  expect(await check('payments.v2.PaymentsService')).toBe(status.NOT_FOUND);
});
