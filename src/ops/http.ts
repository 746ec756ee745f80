import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What the ops server shows. */
export interface OpsServerOptions {
  /** A loopback address: nobody is asked who they are. */
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** A registry of prom-client. */
  readonly metrics: { readonly contentType: string; metrics(): Promise<string> };
  /** Whether calls can be served now. It should answer within the patience of a probe, a second or so. */
  readonly ready: () => Promise<boolean> | boolean;
  /** Told why an answer could not be made; the client is not. */
  readonly onError: (error: unknown) => void;
}

/** A running ops server. */
export interface OpsServer {
  /** The port it listens on. */
  readonly port: number;
  /** Stops it; clients that are slow to read or to ask are cut off. */
  close(): Promise<void>;
}

interface Answer {
  readonly code: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Starts the HTTP server for dashboards and probes.
 *
 * - `GET /metrics`: all series;
 * - `GET /healthz`: 200 while the process lives, whatever it depends on;
 * - `GET /readyz`: 200 `ready`, or 503 with `unready`, or with `error` where that could not be found out.
 *
 * @throws the error of `listen`, such as EADDRINUSE
 */
export async function startOpsServer(options: OpsServerOptions): Promise<OpsServer> {
  const server = createServer((request, response) => {
    answer(options, request).then(
      (answered) => send(response, answered),
      (error: unknown) => {
        options.onError(error);
        send(response, { code: 500, body: 'error' });
      },
    );
  });
  await listen(server, options);
  return { port: (server.address() as AddressInfo).port, close: () => close(server) };
}

async function answer(options: OpsServerOptions, { url = '', method }: IncomingMessage): Promise<Answer> {
  const { metrics } = options;
  const [path] = url.split('?');
  if (path !== '/metrics' && path !== '/healthz' && path !== '/readyz') return { code: 404, body: 'not found' };
  if (method !== 'GET' && method !== 'HEAD') return { code: 405, body: 'GET only', headers: { Allow: 'GET, HEAD' } };
  switch (path) {
    case '/metrics':
      return { code: 200, body: await metrics.metrics(), headers: { 'Content-Type': metrics.contentType } };
    case '/healthz':
      return { code: 200, body: 'alive' };
    case '/readyz':
      return readiness(options);
  }
}

async function readiness({ ready, onError }: OpsServerOptions): Promise<Answer> {
  try {
    return (await ready()) ? { code: 200, body: 'ready' } : { code: 503, body: 'unready' };
  } catch (error) {
    onError(error);
    return { code: 503, body: 'error' };
  }
}

function send(response: ServerResponse, { code, body, headers }: Answer): void {
  response.writeHead(code, { 'Content-Type': 'text/plain; charset=utf-8', ...headers }).end(body);
}

function listen(server: Server, { host, port }: OpsServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.close((error) => (error ? reject(error) : resolve()));
    server.closeAllConnections();
  });
}
