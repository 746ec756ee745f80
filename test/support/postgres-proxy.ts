import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy on loopback before a Postgres: it notes what passes, and can fall silent without closing anything. */
export interface PostgresProxy {
  /** The connection string of the database, by way of the proxy. */
  readonly connectionString: string;
  /**
   * What clients asked since `forget`, a round trip each: the letters of its messages, such as `PBDES` for a prepared
   * statement (Parse, Bind, Describe, Execute, Sync) or `Q` for a simple one.
   */
  roundTrips(): readonly string[];
  /** Forgets what was asked so far. */
  forget(): void;
  /** Falls silent on the connections that there are: nothing passes in either direction, nothing is closed. */
  freeze(): void;
  /** Falls silent as soon as a client sends a text: it is not passed on, or passed on and not answered. */
  freezeAt(text: string, passedOn: boolean): void;
  close(): Promise<void>;
}

/** Starts a proxy. Close it in the test. */
export async function startPostgresProxy(connectionString: string): Promise<PostgresProxy> {
  const target = new URL(connectionString);
  const links: Link[] = [];
  let roundTrips: string[] = [];
  let trigger: { readonly text: string; readonly passedOn: boolean } | undefined;
  const freeze = (): void => {
    for (const link of links) link.frozen = true;
  };
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    const link: Link = { near, far, frozen: false, answered: true };
    links.push(link);
    let started = false;
    near.on('data', (chunk: Buffer) => {
      if (started) {
        const letters = messagesOf(chunk);
        // A text that arrives before the last one was answered belongs to the same round trip.
        if (link.answered) roundTrips.push(letters);
        else roundTrips.push(`${roundTrips.pop() ?? ''}${letters}`);
        link.answered = false;
      }
      started = true;
      const hit = trigger !== undefined && chunk.includes(trigger.text) ? trigger : undefined;
      if (!link.frozen && hit?.passedOn !== false) far.write(chunk);
      if (hit !== undefined) {
        trigger = undefined;
        freeze();
      }
    });
    far.on('data', (chunk: Buffer) => {
      link.answered = true;
      if (!link.frozen) near.write(chunk);
    });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on('error', () => one.destroy());
      one.on('close', () => {
        if (!link.frozen) other.destroy();
        // The server is not to notice that the client gave up.
        else if (one === far) near.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  target.port = String((server.address() as AddressInfo).port);
  const throughProxy = target.href;
  target.port = new URL(connectionString).port;
  return {
    connectionString: throughProxy,
    roundTrips: () => roundTrips,
    forget: () => (roundTrips = []),
    freeze,
    freezeAt: (text, passedOn) => (trigger = { text, passedOn }),
    close: async () => {
      for (const { near, far } of links) {
        near.destroy();
        far.destroy();
      }
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Link {
  readonly near: Socket;
  readonly far: Socket;
  frozen: boolean;
  answered: boolean;
}

/** The letters of the messages in what one write brought; each is followed by its length. */
function messagesOf(chunk: Buffer): string {
  let letters = '';
  for (let at = 0; at + 5 <= chunk.length; at += 1 + chunk.readUInt32BE(at + 1))
    letters += chunk.toString('latin1', at, at + 1);
  return letters;
}
