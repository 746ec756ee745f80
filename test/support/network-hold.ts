import { deferred } from './deferred';
import type { PaymentsWithNetwork } from './payments-with-network';

/** Requests that stand still before the network is asked. */
export interface NetworkHold {
  /** Resolves when the first of them has got there. */
  readonly asked: Promise<void>;
  /** Lets them, and all later ones, be sent. */
  goOn(): void;
}

/** Holds all requests to the network from now on, before they are sent. */
export function holdBeforeNetwork({ hold }: Pick<PaymentsWithNetwork, 'hold'>): NetworkHold {
  const [asked, goOn] = [deferred(), deferred()];
  hold(async (point) => {
    if (point !== 'before') return;
    asked.resolve();
    await goOn.promise;
  });
  return { asked: asked.promise, goOn: () => goOn.resolve() };
}
