import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { type ConnectionFault, createFaultPlan, type FaultPlan, type PlannedFault } from './connection-faults';
import { createFrameSplitter, createStatementReader, type Frame } from './postgres-frames';

/** A proxy before Postgres that knows which statement passes. */
export interface CommitProxy {
  readonly connectionString: string;
  /**
   * Plans a fault for statements that hold a text; `COMMIT` is met by nothing but a COMMIT, sent alone or behind others.
   *
   * @param times how many are met. Default 1
   */
  on(statement: string, fault: ConnectionFault, times?: number): PlannedFault;
  /** Keeps back everything on every connection, those made meanwhile included; what is returned lets it go. */
  freeze(): () => void;
  close(): void;
}

/** One direction of a connection. */
interface Lane {
  write(bytes: Buffer): void;
  end(): void;
  hold(): void;
  letGo(): void;
}

/** Starts one on loopback. It reads what clients send without TLS. */
export async function startCommitProxy(targetUrl: string): Promise<CommitProxy> {
  const target = new URL(targetUrl);
  const plan = createFaultPlan();
  const sockets = new Set<Socket>();
  const lanes = new Set<Lane>();
  let frozen = false;
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      // Messages are passed on one by one; each would wait for the last one's acknowledgement.
      socket.setNoDelay(true);
      socket.on('close', () => sockets.delete(socket));
      socket.on('error', () => socket.destroy());
    }
    const [toServer, toClient] = [createLane(far), createLane(near)];
    for (const lane of [toServer, toClient]) {
      lanes.add(lane);
      if (frozen) lane.hold();
    }
    relay({ near, far, toServer, toClient, plan });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(targetUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    connectionString: url.href,
    on: (statement, fault, times = 1) => plan.add(statement, fault, times),
    freeze: () => {
      frozen = true;
      for (const lane of lanes) lane.hold();
      return () => {
        frozen = false;
        for (const lane of lanes) lane.letGo();
      };
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

interface Connection {
  readonly near: Socket;
  readonly far: Socket;
  readonly toServer: Lane;
  readonly toClient: Lane;
  readonly plan: FaultPlan;
}

function relay({ near, far, toServer, toClient, plan }: Connection): void {
  const textOf = createStatementReader();
  // Each request for an answer ends in ReadyForQuery, the start-up too: so it is known whose answer comes.
  let [asked, answered] = [1, 0];
  let awaited: { readonly fault: NonNullable<ReturnType<FaultPlan['meet']>>; readonly answer: number } | undefined;
  let withheld = false;
  // Preparing and running a statement are several messages up to the one that asks for the answer.
  let isMet = false;

  const cut = (): void => {
    near.destroy();
    far.destroy();
  };

  const hold = (): void => {
    toServer.hold();
    toClient.hold();
  };
  const letGo = (): void => {
    toServer.letGo();
    toClient.letGo();
  };

  const fromClient = (frame: Frame): void => {
    if (near.destroyed) return;
    const text = textOf(frame);
    const met = text === undefined || isMet ? undefined : plan.meet(text);
    isMet = (isMet || met !== undefined) && !asksForAnswer(frame);
    if (met?.fault === 'cut before') {
      cut();
      return met.report();
    }
    if (met?.fault === 'stall before') {
      hold();
      met.report(letGo);
    } else if (met !== undefined) awaited = { fault: met, answer: asked + 1 };
    if (asksForAnswer(frame)) asked += 1;
    toServer.write(frame.bytes);
  };

  const fromServer = (frame: Frame): void => {
    if (awaited !== undefined && !withheld && answered === awaited.answer - 1) {
      withheld = true;
      toClient.hold();
    }
    toClient.write(frame.bytes);
    if (frame.type === 'Z') answered += 1;
    if (awaited === undefined || answered !== awaited.answer) return;
    const { fault } = awaited;
    awaited = undefined;
    withheld = false;
    if (fault.fault === 'cut after') cut();
    toServer.hold();
    fault.report(letGo);
  };

  passFrames(near, createFrameSplitter({ opens: true }), fromClient);
  passFrames(far, createFrameSplitter({ opens: false }), fromServer);
  near.on('close', () => toServer.end());
  far.on('close', () => toClient.end());
}

function asksForAnswer({ type }: Frame): boolean {
  return type === 'Q' || type === 'S';
}

function passFrames(from: Socket, split: (chunk: Buffer) => readonly Frame[], pass: (frame: Frame) => void): void {
  from.on('data', (chunk: Buffer) => split(chunk).forEach(pass));
}

function createLane(to: Socket): Lane {
  const kept: (() => void)[] = [];
  let holds = 0;
  const pass = (step: () => void): void => {
    if (holds > 0) kept.push(step);
    else step();
  };
  return {
    write: (bytes) => pass(() => void (to.writable && to.write(bytes))),
    end: () => pass(() => void to.end()),
    hold: () => {
      holds += 1;
    },
    letGo: () => {
      holds = Math.max(0, holds - 1);
      if (holds === 0) for (const step of kept.splice(0)) step();
    },
  };
}
