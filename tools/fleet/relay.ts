// Passes connections to several endpoints in turn, and skips an endpoint that does not accept one. An endpoint is
// HOST:PORT, or the path of a Unix socket.
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

const CONNECT_MS = 2_000;

export interface Relay {
  readonly port: number;
  close(): void;
}

export async function relay(from: string, to: readonly string[]): Promise<Relay> {
  const open = new Set<Socket>();
  let turn = 0;
  const offer = (client: Socket, left: number): void => {
    const through = connect({ ...endOf(to[turn++ % to.length] ?? ''), allowHalfOpen: true });
    const end = (): void => void through.destroy();
    client.once('close', end);
    const next = (): void => {
      client.off('close', end);
      through.destroy();
      if (left > 1 && !client.destroyed) offer(client, left - 1);
      else client.destroy();
    };
    through.once('error', next);
    through.setTimeout(CONNECT_MS, next);
    through.once('connect', () => {
      through.setTimeout(0);
      through.off('error', next);
      through.on('error', () => client.destroy());
      through.once('close', () => client.destroy());
      client.pipe(through).pipe(client);
    });
  };
  const server: Server = createServer({ allowHalfOpen: true }, client => {
    open.add(client);
    client.once('close', () => open.delete(client));
    client.on('error', () => client.destroy());
    offer(client, to.length);
  });
  server.listen(endOf(from));
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    close: () => {
      server.close();
      for (const client of open) client.destroy();
    },
  };
}

function endOf(end: string): { path: string } | { host: string; port: number } {
  if (end.includes('/')) return { path: end };
  const [host = '', port = ''] = end.split(':');
  return { host, port: Number(port) };
}
