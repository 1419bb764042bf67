// Runs for a moment inside a box's network namespace: listens there, hands the listening socket to the server over
// the channel of `child_process`, and exits when the server has it. Node has no setns; this is how it gets a socket there.
const { createServer } = require('node:net');

/** Longest life of this helper, should the server die before it takes the socket. */
const LIFETIME_MS = 15_000;

/** A helper of a server that was killed in the middle of this may hold the port until it notices. */
const AGAIN_MS = 50;
const TRIES_MAX = 100;

let tries = 0;
const server = createServer();
const listen = () => {
  tries += 1;
  server.listen({ host: '127.0.0.1', port: Number(process.argv[2]) });
};
server.on('listening', () => process.send({ listening: true }, server));
server.on('error', error => {
  if (error.code === 'EADDRINUSE' && tries < TRIES_MAX) setTimeout(listen, AGAIN_MS);
  else process.send({ failed: `${error.code}: ${error.message}` }, () => process.exit(1));
});
listen();
process.once('message', () => process.exit(0));
process.once('disconnect', () => process.exit(0));
setTimeout(() => process.exit(1), LIFETIME_MS);
