import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CuttingProxy {
  readonly address: string;
  /** Ends every connection now, in both directions, without a goodbye. */
  cut(): void;
  /** Keeps what comes over connections made from now on, until `letThrough`. */
  hold(): void;
  letThrough(): void;
  close(): void;
}

/** Starts a TCP proxy on loopback whose connections a test can cut: requests got through, their answers are lost. */
export async function startCuttingProxy(targetPort: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    return socket;
  };
  let open = Promise.resolve();
  let letThrough = (): void => undefined;
  const server = createServer((socket) => void open.then(() => forward(socket)));
  const forward = (socket: Socket): void => {
    const near = keep(socket);
    const far = keep(connect(targetPort, '127.0.0.1'));
    near.pipe(far).pipe(near);
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    cut,
    hold: () => {
      open = new Promise((resolve) => (letThrough = resolve));
    },
    letThrough: () => letThrough(),
    close: () => {
      cut();
      server.close();
    },
  };
}
