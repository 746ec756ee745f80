import type { Server } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';

/** The grpc.health.v1 service of one server. */
export interface Health {
  /** Adds the service; call it before the server listens. */
  addTo(server: Server): void;
  /** Tells every client that asks or watches whether calls are served. */
  setServing(serving: boolean): void;
}

/**
 * Creates the standard health service, for `''` (the server as a whole) and for each named service. All start as
 * NOT_SERVING; an unknown name is NOT_FOUND.
 *
 * A client that watches keeps its call open for ever: after the running calls, a shutdown has to cut what is left.
 *
 * @param serviceNames such as `payments.v1.PaymentsService`
 */
export function createHealth(serviceNames: readonly string[]): Health {
  const names = ['', ...serviceNames];
  const health = new HealthImplementation(Object.fromEntries(names.map((name) => [name, 'NOT_SERVING'])));
  return {
    addTo: (server) => health.addToServer(server),
    setServing: (serving) => {
      for (const name of names) health.setStatus(name, serving ? 'SERVING' : 'NOT_SERVING');
    },
  };
}
