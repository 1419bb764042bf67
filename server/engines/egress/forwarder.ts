// Forwards the plain HTTP requests of one browser connection. One idle outbound connection is kept for the next request
// to the same host, so there are never more outbound connections than browser connections.
import { type ClientRequest, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import type { Socket } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { guardListener } from '../../kit/guard.ts';
import type { BigReads } from './big-reads.ts';
import { type ErrorResponse, errorResponse, FailedError, ProxyFailedError, RefusedError } from './failure.ts';
import type { Gate } from './gate.ts';
import { GateAgent, type GateRequestArgs } from './gate-agent.ts';
import { endToEndHeadersOf, framingOf, requestHeaders } from './headers.ts';
import { proxyAuthorization } from './http-tunnel.ts';
import type { EgressLimits } from './limits.ts';
import { RequestSocket } from './request-socket.ts';
import { type ProxiedResponse, splice } from './splice.ts';
import type { AbsoluteTarget } from './target.ts';
import type { Upstream } from './upstream.ts';

export class Forwarder {
  readonly #gate: Gate;
  readonly #bigReads: BigReads;
  /** Created by the first plain request. Most connections carry a tunnel and need no agent. */
  #agent: GateAgent | undefined;
  readonly #limits: EgressLimits;
  #inFlight = 0;

  constructor(gate: Gate, bigReads: BigReads, limits: EgressLimits) {
    this.#gate = gate;
    this.#bigReads = bigReads;
    this.#limits = limits;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Forwards one plain request. `onFailure` is called before the browser gets the error. */
  forward(
    request: IncomingMessage,
    response: ServerResponse,
    destination: AbsoluteTarget,
    onFailure: (error: unknown) => void,
  ): void {
    this.#inFlight += 1;
    response.once('close', () => {
      this.#inFlight -= 1;
    });
    const fail = (error: unknown): void => {
      onFailure(error);
      sendErrorResponse(request, response, error);
    };
    const bodyFraming = framingOf(request.rawHeaders);
    if (bodyFraming === 'unknown') return fail(new FailedError('bad_request'));
    try {
      const proxy = this.#httpProxy(destination);
      this.#send({ request, response, destination, hasBody: bodyFraming !== 'none', proxy, fail }, true);
    } catch (error) {
      fail(error);
    }
  }

  /**
   * Returns the HTTP proxy to which the request is sent with the whole URL. Undefined for a direct connection, and for
   * a SOCKS proxy, through which the gate opens a tunnel.
   */
  #httpProxy({ target }: AbsoluteTarget): Upstream | undefined {
    const upstream = this.#gate.route(target);
    return upstream?.scheme === 'socks5' ? undefined : upstream;
  }

  /** Call when the browser's connection is closed. */
  close(): void {
    this.#agent?.destroy();
  }

  #send(exchange: Exchange, mayResend: boolean): void {
    const { request, response, destination, hasBody, fail } = exchange;
    // The host may close an idle connection at any time. In that case, a request without a body is sent again. A
    // request with a body cannot be repeated, so it always gets a new connection.
    this.#agent ??= new GateAgent(this.#gate, this.#bigReads);
    this.#agent.keepOnly(hasBody ? undefined : destination.target);
    const outgoing = this.#request(this.#agent, exchange);
    if (!outgoing) return;
    let isSettled = false;
    const onError = (error: unknown): void => {
      if (isSettled || response.destroyed) return;
      isSettled = true;
      if (mayResend && outgoing.reusedSocket && !hasBody) this.#send(exchange, false);
      else fail(error);
    };
    outgoing.on('error', onError);
    outgoing.on('continue', () => response.writeContinue());
    const onInternalError = (error: unknown): void => {
      fail(error);
      outgoing.destroy();
    };
    const onUpgrade = (_: IncomingMessage, socket: Duplex): void => {
      socket.destroy();
      onError(new FailedError('bad_answer'));
    };
    const onResponse = (incoming: IncomingMessage): void => {
      isSettled = true;
      // If the response arrived before the whole request body was sent, the rest of the body is not read.
      if (!request.complete) response.shouldKeepAlive = false;
      sendResponse({ incoming, response, outgoing }, exchange.proxy, fail);
    };
    outgoing.on('upgrade', guardListener(onInternalError, onUpgrade));
    outgoing.on('response', guardListener(onInternalError, onResponse));
    response.once('close', () => {
      if (!response.writableFinished || !outgoing.writableEnded) outgoing.destroy();
    });
    if (hasBody) sendBody(request, outgoing);
    else outgoing.end();
  }

  #request(agent: GateAgent, { request, destination, proxy, fail }: Exchange): ClientRequest | undefined {
    const { target, host, path } = destination;
    const method = request.method ?? 'GET';
    const authorization = proxy && proxyAuthorization(proxy);
    const args: GateRequestArgs = {
      agent,
      host: target.hostname,
      port: target.port,
      method,
      path: proxy ? `http://${host}${path}` : path,
      headers: [
        ...requestHeaders(method, host, request.rawHeaders),
        ...(authorization === undefined ? [] : ['Proxy-Authorization', authorization]),
      ],
      maxHeaderSize: this.#limits.headBytesMax,
      upstream: proxy,
    };
    try {
      const outgoing = send(args);
      // 0 means no limit. With a limit, Node would silently drop the excess headers. `maxHeaderSize` limits the bytes.
      outgoing.maxHeadersCount = 0;
      return outgoing;
    } catch (error) {
      fail(new FailedError('bad_request', error));
      return undefined;
    }
  }
}

/**
 * An empty chunk. Writing it sends the head before there is a body. `flushHeaders` would instead encode bytes above 127
 * as UTF-8 a second time.
 */
const EMPTY_BUFFER = Buffer.alloc(0);

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly destination: AbsoluteTarget;
  readonly hasBody: boolean;
  readonly proxy: Upstream | undefined;
  readonly fail: (error: unknown) => void;
}

/**
 * Sends the request body. Does not use `pipeline`: on an error, it would destroy the browser's connection before the
 * error is sent to the browser.
 */
function sendBody(request: IncomingMessage, outgoing: ClientRequest): void {
  outgoing.write(EMPTY_BUFFER);
  request.pipe(outgoing);
}

const PROXY_AUTHENTICATION_STATUS = 407;

function sendResponse(
  proxiedResponse: ProxiedResponse,
  proxy: Upstream | undefined,
  fail: (error: unknown) => void,
): void {
  const { incoming, response } = proxiedResponse;
  incoming.on('error', () => {
    if (!response.writableEnded) response.destroy();
  });
  const status = incoming.statusCode ?? 0;
  try {
    // A 407 from an origin would make the browser prompt for a proxy password.
    if (status === PROXY_AUTHENTICATION_STATUS)
      throw proxy ? new ProxyFailedError('proxy_refused_user', proxy.name) : new FailedError('bad_answer');
    response.sendDate = false;
    const headers = endToEndHeadersOf(incoming.rawHeaders);
    if (isChunked(proxiedResponse)) headers.push('Transfer-Encoding', 'chunked');
    response.writeHead(status, incoming.statusMessage, headers);
  } catch (error) {
    incoming.destroy();
    fail(error instanceof FailedError ? error : new FailedError('bad_answer', error));
    return;
  }
  // First, the parser must emit the body bytes that arrived together with the head.
  process.nextTick(() => {
    if (!incoming.destroyed && !response.destroyed) sendResponseBody(proxiedResponse);
  });
}

/**
 * Whether the response is sent in chunks. This is the case if it arrived in chunks and the browser uses HTTP/1.1. A
 * chunk keeps its size unless it arrived in several reads.
 */
const isChunked = ({ incoming, response }: ProxiedResponse): boolean =>
  incoming.headers['transfer-encoding'] === 'chunked' && response.req.httpVersion === '1.1';

function sendChunks({ incoming, response }: ProxiedResponse): void {
  const { socket } = response;
  socket?.cork();
  incoming.on('data', (piece: Buffer) => response.write(piece));
  incoming.once('end', () => {
    response.end();
    socket?.uncork();
  });
}

function sendResponseBody(proxiedResponse: ProxiedResponse): void {
  const { incoming, response } = proxiedResponse;
  // A complete body is sent in one write, because each write wakes the browser.
  if (incoming.complete) {
    if (isChunked(proxiedResponse)) sendChunks(proxiedResponse);
    else response.end(incoming.read());
    return;
  }
  // Send the head now: the first event of an event stream may come much later.
  response.write(EMPTY_BUFFER);
  if (!splice(proxiedResponse)) streamBody(proxiedResponse);
}

function streamBody({ incoming, response }: ProxiedResponse): void {
  reuseReadBuffer(incoming, response);
  pipeline(incoming, response, () => {});
}

/** Reuses the read buffer. When neither stream holds any data, the kernel has copied all of the data. */
function reuseReadBuffer(incoming: IncomingMessage, response: ServerResponse): void {
  const { socket } = incoming;
  if (!(socket instanceof RequestSocket)) return;
  socket.reuseWhen(() => incoming.readableLength === 0 && response.writableLength === 0);
  incoming.once('close', () => socket.reuseWhen(() => false));
}

/**
 * Sends an error to the browser. A refusal is sent as a page. A network failure looks as it would without a proxy: the
 * connection is closed, and the browser reports a network error.
 */
export function sendErrorResponse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const reply = errorResponse(error);
  if (error instanceof RefusedError || (error instanceof FailedError && error.kind === 'bad_request'))
    sendPage(request, response, reply);
  else abortConnection(request.socket, reply, endingOf(error));
}

function sendPage(request: IncomingMessage, response: ServerResponse, { status, header, text }: ErrorResponse): void {
  const body = Buffer.from(text);
  response.sendDate = false;
  // Close the connection instead of reading a body that is not needed.
  if (!request.complete) response.shouldKeepAlive = false;
  response.writeHead(status, [
    ...header,
    'content-type',
    'text/plain; charset=utf-8',
    'content-length',
    `${body.length}`,
  ]);
  response.end(body);
}

type Ending = 'reset' | 'end' | 'malformed';

/** Returns how the browser's connection must be ended to match what the host did. */
function endingOf(error: unknown): Ending {
  if (error instanceof FailedError) return error.kind === 'bad_answer' ? 'malformed' : 'reset';
  if (!(error instanceof Error && 'code' in error)) return 'reset';
  if (typeof error.code === 'string' && error.code.startsWith('HPE_')) return 'malformed';
  // If `syscall` is absent, Node itself reports ECONNRESET: the host closed the connection without a response. After a
  // real reset, `syscall` is set.
  return error.code === 'ECONNRESET' && !('syscall' in error) ? 'end' : 'reset';
}

/** A head that browsers reject, because it contains a NUL. */
const MALFORMED_HEAD = 'HTTP/1.1 502 \0\r\n\r\n';

/**
 * Sends an interim response and ends the connection. The interim response contains the name of the failure for
 * debugging, and shows the browser that a response has begun. Otherwise, the browser would repeat a request on a reused
 * connection, and the host could execute it twice.
 */
function abortConnection(browser: Socket, { header }: ErrorResponse, ending: Ending): void {
  if (!browser.writable) {
    browser.destroy();
    return;
  }
  const interimResponse = `HTTP/1.1 100 Continue\r\n${header.join(': ')}\r\n\r\n`;
  if (ending === 'reset') {
    browser.write(interimResponse);
    browser.resetAndDestroy();
  } else browser.end(ending === 'end' ? interimResponse : interimResponse + MALFORMED_HEAD, () => browser.destroy());
}
