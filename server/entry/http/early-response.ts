// Responses that are sent before the request body has arrived. If the connection were closed at once, the TCP reset
// caused by the rest of the body could discard the response before a client that is still sending has read it. The body
// is therefore read to its end and discarded. Then the connection is reused, unless the client wants it closed.
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** How long the rest of the body may take to arrive after the response. */
const UNWANTED_BODY_TIMEOUT_MS = 15_000;

/**
 * Must be called before a response is sent early. Node, or the code that has started to read the body, discards the
 * rest of the body.
 */
export function keepReadingBody({ raw: request }: FastifyRequest, reply: FastifyReply): void {
  const response = reply.raw;
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  const hasBody = encoding !== undefined || Number(length ?? 0) > 0;
  if (request.complete !== false || !hasBody) return;
  const { socket } = request;
  const shouldClose = !response.shouldKeepAlive;
  // Fastify makes Node close the connection after the response, which would be too early.
  reply.removeHeader('connection');
  response.shouldKeepAlive = true;
  const timeout = setTimeout(() => socket.destroy(), UNWANTED_BODY_TIMEOUT_MS).unref();
  request.once('end', () => {
    clearTimeout(timeout);
    if (shouldClose) whenSent(response, () => socket.destroySoon());
  });
  request.once('close', () => clearTimeout(timeout));
}

function whenSent(response: ServerResponse, next: () => void): void {
  if (response.writableFinished) next();
  else response.once('finish', next);
}
