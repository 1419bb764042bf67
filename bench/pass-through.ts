// A minimal TCP proxy in Node between a client and Chromium's own socket, in a child process. Its cost is the lower
// bound for a gateway in Node on this machine. Sends its port to the parent over IPC, and exits when the IPC channel is
// closed.
import { connect, createServer } from 'node:net';

const targetPort = Number(process.argv[2]);

const server = createServer({ noDelay: true }, client => {
  const browserSocket = connect({ port: targetPort, host: '127.0.0.1', noDelay: true });
  client.on('data', bytes => void browserSocket.write(bytes));
  browserSocket.on('data', bytes => void client.write(bytes));
  for (const [one, other] of [
    [client, browserSocket],
    [browserSocket, client],
  ] as const) {
    one.on('error', () => {}); // a 'close' event follows
    one.on('close', () => other.destroy());
  }
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address && typeof address === 'object') process.send?.(address.port);
});
process.on('disconnect', () => process.exit());
