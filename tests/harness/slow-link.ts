// A link with limited bandwidth between a viewer and the server: a TCP relay. Only the direction from the server is
// limited.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

const TICK_MS = 20;

export interface SlowLink {
  /** Returns the URL with the address of the relay. */
  urlThrough(url: string): string;
  /** Number of bytes that were relayed. */
  readonly relayedBytes: number;
  close(): void;
}

export async function openSlowLink(port: number, bitsPerSecond: number): Promise<SlowLink> {
  const bytesPerTick = Math.round((bitsPerSecond / 8) * (TICK_MS / 1000));
  const sockets = new Set<Socket>();
  let relayedBytes = 0;
  const relay = createServer(viewer => {
    const server = connect(port, '127.0.0.1');
    for (const socket of [viewer, server]) {
      sockets.add(socket);
      socket.setNoDelay(true).on('error', () => {}); // the 'close' event follows
    }
    // Only this timer reads, so that backpressure limits the server to the bandwidth.
    const tick = setInterval(() => {
      const bytes: Buffer | null = server.read(Math.min(bytesPerTick, server.readableLength));
      if (bytes === null) return;
      relayedBytes += bytes.length;
      viewer.write(bytes);
    }, TICK_MS);
    viewer.pipe(server);
    const end = (): void => {
      clearInterval(tick);
      viewer.destroy();
      server.destroy();
    };
    viewer.on('close', end);
    server.on('close', end);
    server.on('readable', () => {}); // starts reading, up to the size of its buffer
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  const address = relay.address();
  const relayPort = typeof address === 'object' && address ? address.port : 0;
  return {
    urlThrough: url => Object.assign(new URL(url), { port: String(relayPort) }).href,
    get relayedBytes() {
      return relayedBytes;
    },
    close: () => {
      relay.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
