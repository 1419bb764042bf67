// Closes the HTTP server: requests that have arrived are answered, and connections are closed after their last response.
import type { Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { acceptBacklog } from '../../kit/accept-backlog.ts';
import type { Clock } from '../../kit/clock.ts';

/** How long requests in progress may take when the server is closing. */
const CLOSE_GRACE_MS = 5000;
/** How long requests are still accepted on open connections when the server closes. */
const LAST_REQUESTS_MS = 50;

/**
 * Returns a function that closes the server, including the connections that other listeners passed to it. Call
 * `gracefulClose` before the server listens, so that it knows all connections.
 */
export function gracefulClose(app: FastifyInstance, server: Server, clock: Clock): () => Promise<void> {
  const sockets = new Set<Socket>();
  const openResponses = new WeakMap<Socket, number>();
  let isClosing = false;
  server.on('connection', socket => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('request', (request, response) => {
    const { socket } = request;
    openResponses.set(socket, (openResponses.get(socket) ?? 0) + 1);
    response.once('close', () => {
      const stillOpen = (openResponses.get(socket) ?? 0) - 1;
      openResponses.set(socket, stillOpen);
      // Needed if the headers of the response were sent before the server was closed.
      if (isClosing && stillOpen === 0 && request.complete) socket.destroySoon();
    });
  });
  app.addHook('onSend', (request, reply, _payload, done) => {
    // If the body has not been read, closing the connection at once could lose the response. See early-response.ts.
    if (isClosing && request.raw.complete) reply.header('connection', 'close');
    done();
  });
  app.addHook('preClose', () => {
    isClosing = true;
    return answerLastRequests(server, sockets, clock);
  });
  return async () => {
    const destroyAll = (): void => {
      for (const socket of sockets) socket.destroy();
    };
    // Repeated, because a connection may be accepted just afterwards. Upgraded connections are destroyed, too.
    const interval = setInterval(destroyAll, CLOSE_GRACE_MS);
    try {
      await app.close();
      // `app.close` does not wait for connections that other listeners accepted.
      await Promise.all([...sockets].map(closed));
    } finally {
      clearInterval(interval);
    }
  };
}

const closed = (socket: Socket): Promise<void> => new Promise(resolve => socket.once('close', () => resolve()));

/**
 * Stops listening, and answers requests that have arrived or arrive within `LAST_REQUESTS_MS`, with `Connection: close`.
 * Without this, Node closes a connection without an answer if its request has not been read yet.
 */
async function answerLastRequests(server: Server, sockets: ReadonlySet<Socket>, clock: Clock): Promise<void> {
  await acceptBacklog(server, clock);
  NetServer.prototype.close.call(server); // Unlike the method of the HTTP server, it leaves idle connections open.
  if (sockets.size === 0) return;
  await sleep(LAST_REQUESTS_MS);
  await setImmediate(); // The timer may have fired late, before sockets were read. This waits until they are.
  for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy(); // No request was sent on it.
}
