import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { PaymentsServiceClient } from '../src/gen/proto/payments/v1/payments';
import type { DemoServiceOptions, FromDemoService, ToDemoService } from './demo-messages';

/** A service in an operating system process of its own. */
export interface DemoProcess {
  /** Its name and its process id, for a column of the table. */
  readonly label: string;
  readonly client: PaymentsServiceClient;
  /** How often it has asked the card network for an amount. */
  authorizationsAsked(): number;
  /** Makes the card network silent towards this process, and resolves then; `asked` resolves when it is next asked. */
  holdAuthorizations(): Promise<{ readonly asked: Promise<void> }>;
  /** Lets the card network answer what it was asked. */
  answerAuthorizations(): void;
  /** Ends it as a crash does; resolves when it is gone. */
  kill(): Promise<void>;
  /** Ends it in good order, unless it has ended. */
  stop(): Promise<void>;
}

/**
 * Starts a service; resolves when it is ready. It ends with this process, however that ends.
 *
 * @param name short, such as `p1`
 */
export async function startDemoProcess(name: string, options: DemoServiceOptions): Promise<DemoProcess> {
  const child = fork(join(__dirname, 'demo-service.ts'), [JSON.stringify(options)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  const waiting = { held: (): void => undefined, asked: (): void => undefined };
  let authorizationsAsked = 0;
  const grpcPort = await new Promise<number>((resolve, reject) => {
    void exited.then(() => reject(new Error(`${name} ended before it was ready`)));
    child.on('message', (message: FromDemoService) => {
      if (message.type === 'ready') resolve(message.grpcPort);
      else waiting[message.type]();
      if (message.type === 'asked') authorizationsAsked += 1;
    });
  });
  const client = new PaymentsServiceClient(`127.0.0.1:${grpcPort}`, credentials.createInsecure());
  // An interrupted scene may go on for a moment when its processes are gone.
  const tell = (message: ToDemoService): void => void (child.connected && child.send(message));
  const end = async (how: () => void): Promise<void> => {
    client.close();
    if (child.exitCode === null && child.signalCode === null) how();
    await exited;
  };
  return {
    ...{ label: `${name} ${child.pid}`, client },
    authorizationsAsked: () => authorizationsAsked,
    holdAuthorizations: async () => {
      const held = new Promise<void>((resolve) => (waiting.held = resolve));
      const asked = new Promise<void>((resolve) => (waiting.asked = resolve));
      tell({ type: 'hold' });
      await held;
      return { asked };
    },
    answerAuthorizations: () => tell({ type: 'answer' }),
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
    stop: () => end(() => tell({ type: 'stop' })),
  };
}
