// An answer may be known before the body of its request has come. If the connection were closed behind it, the reset that
// meets the rest of the body would take the answer away from a client that still sends. So the body is read to its end and
// thrown away, and then the connection serves the next request, unless the client wants it closed.
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** How long, from the answer on, a body that nobody wants may still take to come. */
const UNWANTED_BODY_MS = 15_000;

/** To be called before such an answer is sent. The rest of the body is thrown away by Node, or by who has begun to read it. */
export function answerBeforeTheBody({ raw: request }: FastifyRequest, reply: FastifyReply): void {
  const response = reply.raw;
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  const hasBody = encoding !== undefined || Number(length ?? 0) > 0;
  if (request.complete !== false || !hasBody) return;
  const { socket } = request;
  const closes = !response.shouldKeepAlive;
  // Fastify asks Node to close behind the answer, which would be too early.
  reply.removeHeader('connection');
  response.shouldKeepAlive = true;
  const late = setTimeout(() => socket.destroy(), UNWANTED_BODY_MS).unref();
  request.once('end', () => {
    clearTimeout(late);
    if (closes) whenSent(response, () => socket.destroySoon());
  });
  request.once('close', () => clearTimeout(late));
}

function whenSent(response: ServerResponse, next: () => void): void {
  if (response.writableFinished) next();
  else response.once('finish', next);
}
