// Splices large response bodies: when Node's HTTP client has parsed the head and the length is known, the bytes go from
// socket to socket, without the parser and streams. This reduces the CPU time per byte to a third.
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { RequestSocket } from './request-socket.ts';

/**
 * Smaller bodies are not spliced. The parser does not see the end of a spliced body, so the connection cannot be
 * reused.
 */
const SPLICED_BYTES_MIN = 4 * 1024 * 1024;

export interface ProxiedResponse {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  readonly outgoing: ClientRequest;
}

/** Returns the sockets to splice. Undefined if the body must go through the parser. */
function findSplice({ incoming, response }: ProxiedResponse): { outside: RequestSocket; browser: Socket } | undefined {
  const { socket: upstream, headers, complete } = incoming;
  // `response.socket` is null while an earlier pipelined response is still being sent.
  const browser = response.socket;
  if (!(upstream instanceof RequestSocket) || !browser || complete || headers['transfer-encoding'] !== undefined)
    return undefined;
  return Number(headers['content-length']) >= SPLICED_BYTES_MIN ? { outside: upstream, browser } : undefined;
}

/**
 * Splices the rest of the body. Call after the head was sent and the bytes that arrived with it were parsed. Returns
 * false if the body cannot be spliced.
 */
export function splice({ incoming, response, outgoing }: ProxiedResponse): boolean {
  const sockets = findSplice({ incoming, response, outgoing });
  // Bytes in the socket's buffer are not parsed yet, so it is not known how many of them belong to the body.
  if (!sockets || sockets.outside.readableLength > 0) return false;
  const { outside, browser } = sockets;
  const remainingBytes = Number(incoming.headers['content-length']) - incoming.readableLength;
  const earlyBytes: unknown = incoming.read();
  if (Buffer.isBuffer(earlyBytes)) browser.write(earlyBytes);
  outside.spliceTo(browser, remainingBytes, () => {
    response.end();
    outgoing.destroy();
  });
  return true;
}
