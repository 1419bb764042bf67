// A refusal may be known before the body has come. If the connection were closed with the answer's last byte, what is still on
// its way would meet a closed door, and the reset that follows takes the answer away from who has not read it yet.
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
  const closes = !response.shouldKeepAlive || reply.hasHeader('connection');
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
