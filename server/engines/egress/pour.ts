// The rest of a large body on the shortest way: once Node's HTTP client has read the head and its length is known, the
// bytes go from socket to socket, past the parser and all streams. It is a third of the CPU time of each byte.
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { RequestSocket } from './request-socket.ts';

/** The parser never sees the end of such a body, so its connection serves no other request: what is smaller keeps it. */
const POURED_BYTES_LEAST = 4 * 1024 * 1024;

export interface Passing {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  readonly outgoing: ClientRequest;
}

/** Undefined where the body goes by the parser. The head of the response must be on its way. */
function pourable({ incoming, response }: Passing): { outside: RequestSocket; browser: Socket } | undefined {
  const { socket: outside, headers, complete } = incoming;
  // In a pipeline, an answer before this one may still be going out.
  const browser = response.socket;
  if (!(outside instanceof RequestSocket) || !browser || complete || headers['transfer-encoding'] !== undefined)
    return undefined;
  return Number(headers['content-length']) >= POURED_BYTES_LEAST ? { outside, browser } : undefined;
}

/** Once what came along with the head has been parsed. False: it must go the ordinary way after all. */
export function pour({ incoming, response, outgoing }: Passing): boolean {
  const way = pourable({ incoming, response, outgoing });
  // What waits in the socket has yet to be parsed, and then nobody would know how much of the body it was.
  if (!way || way.outside.readableLength > 0) return false;
  const { outside, browser } = way;
  const left = Number(incoming.headers['content-length']) - incoming.readableLength;
  const early: unknown = incoming.read();
  if (Buffer.isBuffer(early)) browser.write(early);
  outside.pour(browser, left, () => {
    response.end();
    outgoing.destroy();
  });
  return true;
}
