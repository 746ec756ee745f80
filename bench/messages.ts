/** How a server of the bench runs its handlers. */
export type Variant =
  /** One interactive transaction per call on the plain driver adapter, no interceptor: the baseline. */
  | 'unprotected'
  /** The same, on the connections that the protected server uses. */
  | 'unprotected, same adapter'
  /** As a service of this package runs. */
  | 'protected'
  /** With a Prisma client as anybody has one, on the plain driver adapter. */
  | 'protected, any client';

/** What a server process is started with; sent to it as JSON. */
export interface ServerOptions {
  readonly connectionString: string;
  readonly variant: Variant;
}

/** Messages of a server process to the bench. */
export type FromServer =
  | { readonly type: 'ready'; readonly port: number }
  /** Processor time that the process has used so far, microseconds. */
  | { readonly type: 'cpu'; readonly usedUs: number };

/** Messages of the bench to a server process. */
export interface ToServer {
  readonly type: 'cpu' | 'stop';
}
