/** What a service of the demo is started with, as JSON in its first argument. */
export interface DemoServiceOptions {
  readonly connectionString: string;
  /** How long a claim is held, whole seconds: a takeover is not possible before. */
  readonly leaseSeconds: number;
}

/** What a service tells the demo. */
export type FromDemoService =
  | { readonly type: 'ready'; readonly grpcPort: number }
  /** The card network is silent now. */
  | { readonly type: 'held' }
  /** The card network was asked for an amount. */
  | { readonly type: 'asked' };

/** What the demo tells a service. */
export type ToDemoService =
  /** From now on the card network is silent, until `answer`. */
  { readonly type: 'hold' } | { readonly type: 'answer' } | { readonly type: 'stop' };
