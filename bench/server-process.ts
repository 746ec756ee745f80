import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { PaymentsServiceClient } from '../src/gen/proto/payments/v1/payments';
import type { FromServer, ServerOptions, ToServer, Variant } from './messages';

/** A server of the bench, seen from the process that calls it. */
export interface ServerProcess {
  readonly variant: Variant;
  readonly client: PaymentsServiceClient;
  /** Processor time that the server has used so far, microseconds. */
  cpuUs(): Promise<number>;
  stop(): Promise<void>;
}

/** Starts a server in a process of its own; resolves when it listens. It ends with this process, however that ends. */
export async function startServerProcess(options: ServerOptions): Promise<ServerProcess> {
  const child = fork(join(__dirname, 'server.ts'), [JSON.stringify(options)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  const next = async <Type extends FromServer['type']>(type: Type): Promise<Extract<FromServer, { type: Type }>> => {
    const ended = exited.then(() => Promise.reject(new Error(`the ${options.variant} server ended`)));
    const [message] = (await Promise.race([once(child, 'message'), ended])) as [FromServer];
    if (message.type !== type) throw new Error(`expected ${type}, got ${message.type}`);
    return message as Extract<FromServer, { type: Type }>;
  };
  const tell = (message: ToServer): void => void (child.connected && child.send(message));
  const { port } = await next('ready');
  const client = new PaymentsServiceClient(`127.0.0.1:${String(port)}`, credentials.createInsecure());
  return {
    ...{ variant: options.variant, client },
    cpuUs: async () => {
      const answered = next('cpu');
      tell({ type: 'cpu' });
      return (await answered).usedUs;
    },
    stop: async () => {
      client.close();
      tell({ type: 'stop' });
      await exited;
    },
  };
}
