import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createFrameSplitter, createStatementReader, type Frame } from './postgres-frames';

/** A moment at which a process may die: before something outside of it is asked, or after that was done. */
export interface Boundary {
  /** What is asked, such as `INSERT payments`. */
  readonly name: string;
  /** `after`: it is done, and the process has not heard of it yet. */
  readonly point: 'before' | 'after';
}

/** Told of every boundary, in the order of time. What it answers `hold` for goes no further, nor does its connection. */
export type AtBoundary = (boundary: Boundary) => 'go' | 'hold';

/** A proxy before Postgres, at which every statement of a process has two boundaries. */
export interface BoundaryProxy {
  readonly connectionString: string;
  close(): void;
}

/**
 * Starts one on loopback. Statements that go to the server together, up to the one that asks for the answer, are one.
 * Those of maintenance are not told: they come at times of their own.
 */
export async function startBoundaryProxy(targetUrl: string, atBoundary: AtBoundary): Promise<BoundaryProxy> {
  const target = new URL(targetUrl);
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    pass(near, far, atBoundary);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(targetUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    connectionString: url.href,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Passes the messages of one connection on, until it is held. */
function pass(near: Socket, far: Socket, atBoundary: AtBoundary): void {
  const textOf = createStatementReader();
  const [fromClient, fromServer] = [createFrameSplitter({ opens: true }), createFrameSplitter({ opens: false })];
  /** What was asked and is not answered, by its name; the first answer is that to the opening. */
  const asked: (string | undefined)[] = [undefined];
  const request: Buffer[] = [];
  const answer: Buffer[] = [];
  let texts: string[] = [];
  let isTold = true;
  let isHeld = false;

  const boundary = (name: string | undefined, point: Boundary['point']): void => {
    if (name !== undefined && isTold) isHeld = atBoundary({ name, point }) === 'hold';
  };

  const onRequest = (frame: Frame): void => {
    if (isHeld) return;
    // Only the opening has no type, and it says who connects.
    if (frame.type === '') isTold = !frame.bytes.includes('grpc-idempotency maintenance');
    request.push(frame.bytes);
    const text = frame.type === 'Q' || frame.type === 'B' ? textOf(frame) : (textOf(frame), undefined);
    if (text !== undefined) texts.push(text);
    if (frame.type === 'Q' || frame.type === 'S') {
      const name = nameOf(texts);
      boundary(name, 'before');
      if (isHeld) return;
      asked.push(name);
      texts = [];
    } else if (frame.type !== '' && frame.type !== 'p' && frame.type !== 'X') return;
    far.write(Buffer.concat(request.splice(0)));
  };

  const onAnswer = (frame: Frame): void => {
    if (isHeld) return;
    answer.push(frame.bytes);
    if (frame.type === 'Z') boundary(asked.shift(), 'after');
    // What asks for a password comes before the first answer ends.
    if (!isHeld && (frame.type === 'Z' || frame.type === 'R')) near.write(Buffer.concat(answer.splice(0)));
  };

  near.on('data', (chunk: Buffer) => fromClient(chunk).forEach(onRequest));
  far.on('data', (chunk: Buffer) => fromServer(chunk).forEach(onAnswer));
}

const TABLE = String.raw`\s+("public"\.)?"?(?<table>\w+)"?(?![\w(])`;
/** What a statement writes, or else what it reads. `FOR UPDATE` and `DO UPDATE` name no table. */
const WRITES = new RegExp(String.raw`\b(?<verb>INSERT|(?<!FOR )(?<!DO )UPDATE|DELETE)( INTO| FROM)?${TABLE}`, 'i');
const READS = new RegExp(String.raw`\bFROM${TABLE}`, 'i');

/** Verb and table of each statement; of those without a table their first word. */
function nameOf(texts: readonly string[]): string {
  const names = texts.map((text) => {
    const { verb = 'SELECT', table } = (WRITES.exec(text) ?? READS.exec(text))?.groups ?? {};
    return table === undefined ? text.trim().split(/\s+/, 1).join() : `${verb.toUpperCase()} ${table}`;
  });
  return names.join(' + ');
}
