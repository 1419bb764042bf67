// Runs in the network of the fleet: listens on a Unix socket, and gives each connection to the next host that accepts it.
import { connect, createServer, type Socket } from 'node:net';

const [path = '', ...hosts] = process.argv.slice(2);
const CONNECT_MS = 2_000;
let turn = 0;

createServer({ allowHalfOpen: true }, client => {
  client.on('error', () => client.destroy());
  offer(client, hosts.length);
}).listen(path);

function offer(client: Socket, left: number): void {
  const [host = '', port = ''] = (hosts[turn++ % hosts.length] ?? '').split(':');
  const through = connect({ host, port: Number(port), allowHalfOpen: true });
  const next = (): void => {
    through.destroy();
    if (left > 1) offer(client, left - 1);
    else client.destroy();
  };
  through.once('error', next);
  through.setTimeout(CONNECT_MS, next);
  through.once('connect', () => {
    through.setTimeout(0);
    through.off('error', next);
    through.on('error', () => client.destroy());
    client.once('close', () => through.destroy());
    through.once('close', () => client.destroy());
    client.pipe(through).pipe(client);
  });
}
