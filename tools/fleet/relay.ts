// Passes connections to several endpoints in turn, and skips an endpoint that does not accept one. An endpoint is
// HOST:PORT, or the path of a Unix socket.
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

const CONNECT_TIMEOUT_MS = 2_000;

export interface Relay {
  readonly port: number;
  close(): void;
}

export async function relay(from: string, to: readonly string[]): Promise<Relay> {
  const clients = new Set<Socket>();
  let nextIndex = 0;
  const connectClient = (client: Socket, triesLeft: number): void => {
    const upstream = connect({ ...endpointOf(to[nextIndex++ % to.length] ?? ''), allowHalfOpen: true });
    const end = (): void => void upstream.destroy();
    client.once('close', end);
    const tryNext = (): void => {
      client.off('close', end);
      upstream.destroy();
      if (triesLeft > 1 && !client.destroyed) connectClient(client, triesLeft - 1);
      else client.destroy();
    };
    upstream.once('error', tryNext);
    upstream.setTimeout(CONNECT_TIMEOUT_MS, tryNext);
    upstream.once('connect', () => {
      upstream.setTimeout(0);
      upstream.off('error', tryNext);
      upstream.on('error', () => client.destroy());
      upstream.once('close', () => client.destroy());
      client.pipe(upstream).pipe(client);
    });
  };
  const server: Server = createServer({ allowHalfOpen: true }, client => {
    clients.add(client);
    client.once('close', () => clients.delete(client));
    client.on('error', () => client.destroy());
    connectClient(client, to.length);
  });
  server.listen(endpointOf(from));
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    close: () => {
      server.close();
      for (const client of clients) client.destroy();
    },
  };
}

function endpointOf(end: string): { path: string } | { host: string; port: number } {
  if (end.includes('/')) return { path: end };
  const [host = '', port = ''] = end.split(':');
  return { host, port: Number(port) };
}
