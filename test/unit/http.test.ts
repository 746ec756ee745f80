import { once } from 'node:events';
import { connect } from 'node:net';
import { createMetrics } from '../../src/ops/metrics';
import { type OpsServer, type OpsServerOptions, startOpsServer } from '../../src/ops/http';

const { registry } = createMetrics({ version: '1.2.3', policies: [] });
let ready: OpsServerOptions['ready'];
let server: OpsServer;
let told: unknown[];
const onError: OpsServerOptions['onError'] = (error) => told.push(error);

beforeEach(async () => {
  told = [];
  ready = () => true;
  server = await startOpsServer({ host: '127.0.0.1', port: 0, metrics: registry, ready: () => ready(), onError });
});

afterEach(async () => {
  await server.close().catch(() => undefined);
});

async function get(path: string, init: RequestInit = {}) {
  const response = await fetch(`http://127.0.0.1:${server.port}${path}`, init);
  return { code: response.status, body: await response.text(), headers: response.headers };
}

test('/metrics shows the registry in its own content type', async () => {
  const { code, body, headers } = await get('/metrics');
  expect(code).toBe(200);
  expect(headers.get('content-type')).toBe(registry.contentType);
  expect(body).toBe(await registry.metrics());
});

test('/healthz is 200 also while nothing can be served', async () => {
  ready = () => false;
  expect(await get('/healthz')).toMatchObject({ code: 200, body: 'alive' });
});

test.each<[name: string, ready: OpsServerOptions['ready'], code: number, body: string]>([
  ['true', () => true, 200, 'ready'],
  ['a promise of true', () => Promise.resolve(true), 200, 'ready'],
  ['false', () => false, 503, 'unready'],
  ['a promise of false', () => Promise.resolve(false), 503, 'unready'],
  ['a rejection', () => Promise.reject(new Error('secret')), 503, 'error'],
])('/readyz on %s', async (_name, answer, code, body) => {
  ready = answer;
  expect(await get('/readyz')).toMatchObject({ code, body });
  // Whoever asks is not told why; whoever runs the service is.
  expect(told).toHaveLength(body === 'error' ? 1 : 0);
});

test('a query does not hide the path', async () => {
  expect(await get('/readyz?verbose')).toMatchObject({ code: 200 });
});

test.each(['/', '/metrics/', '/favicon.ico'])('%s is not found', async (path) => {
  expect(await get(path)).toMatchObject({ code: 404 });
});

test('only reading is allowed', async () => {
  const { code, headers } = await get('/metrics', { method: 'POST' });
  expect(code).toBe(405);
  expect(headers.get('allow')).toBe('GET, HEAD');
  expect(await get('/healthz', { method: 'HEAD' })).toMatchObject({ code: 200, body: '' });
});

test('metrics that cannot be collected are a 500 and not the end of the server', async () => {
  const metrics = { contentType: 'text/plain', metrics: () => Promise.reject(new Error('secret')) };
  const broken = await startOpsServer({ host: '127.0.0.1', port: 0, metrics, ready, onError });
  try {
    const response = await fetch(`http://127.0.0.1:${broken.port}/metrics`);
    expect([response.status, await response.text()]).toEqual([500, 'error']);
    expect(told).toEqual([new Error('secret')]);
  } finally {
    await broken.close();
  }
});

test('a taken port rejects the start', async () => {
  const second = startOpsServer({ host: '127.0.0.1', port: server.port, metrics: registry, ready, onError });
  await expect(second).rejects.toMatchObject({ code: 'EADDRINUSE' });
});

test('neither an idle, nor a stalled, nor a waiting client holds up the close', async () => {
  await get('/healthz');
  const stalled = connect(server.port, '127.0.0.1');
  stalled.on('error', () => undefined);
  await once(stalled, 'connect');
  stalled.write('GET /metrics HTTP/1.1\r\nHost: half');
  const asked = new Promise<void>((resolve) => {
    ready = () => {
      resolve();
      return new Promise<boolean>(() => undefined);
    };
  });
  const waiting = get('/readyz').catch(() => 'cut off');
  await asked;
  await server.close();
  expect(await waiting).toBe('cut off');
  stalled.destroy();
});
