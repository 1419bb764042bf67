// Runs for a moment inside a box's network namespace: listens there, hands the listening socket to the server over
// the channel of `child_process`, and exits when the server has it. Node has no setns; this is how it gets a socket there.
const { createServer } = require('node:net');

/** Longest life of this helper, should the server die before it takes the socket. */
const LIFETIME_MS = 15_000;

const server = createServer();
server.on('error', error => process.send({ failed: `${error.code}: ${error.message}` }, () => process.exit(1)));
server.listen({ host: '127.0.0.1', port: Number(process.argv[2]) }, () => process.send({ listening: true }, server));
process.once('message', () => process.exit(0));
process.once('disconnect', () => process.exit(0));
setTimeout(() => process.exit(1), LIFETIME_MS);
