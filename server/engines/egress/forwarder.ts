// Plain HTTP: the requests of one browser connection, each sent on to where its absolute URL points. One idle outside
// connection is kept for the next request to the same place, so the outside never has more of them than the browser.
import { type ClientRequest, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import type { Socket } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { guarded } from '../../kit/guard.ts';
import type { BigReads } from './big-reads.ts';
import { type Answer, answerTo, Failed, ProxyFailed, Refused } from './failure.ts';
import type { Gate } from './gate.ts';
import { GateAgent, type GateRequestArgs } from './gate-agent.ts';
import { endToEnd, framing, requestHeaders } from './headers.ts';
import { proxyAuthorization } from './http-tunnel.ts';
import type { EgressLimits } from './limits.ts';
import { type Passing, pour } from './pour.ts';
import { RequestSocket } from './request-socket.ts';
import type { AbsoluteTarget } from './target.ts';
import type { Upstream } from './upstream.ts';

export class Forwarder {
  readonly #gate: Gate;
  readonly #bigReads: BigReads;
  /** Made by the first plain request; most connections carry a tunnel instead. */
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

  /** `onFailure` hears of an error before the browser does. */
  forward(
    request: IncomingMessage,
    response: ServerResponse,
    wanted: AbsoluteTarget,
    onFailure: (error: unknown) => void,
  ): void {
    this.#inFlight += 1;
    response.once('close', () => {
      this.#inFlight -= 1;
    });
    const fail = (error: unknown): void => {
      onFailure(error);
      sendAnswer(request, response, error);
    };
    const body = framing(request.rawHeaders);
    if (body === 'unknown') return fail(new Failed('bad_request'));
    try {
      const proxy = this.#askedProxy(wanted);
      this.#send({ request, response, wanted, hasBody: body !== 'none', proxy, fail }, true);
    } catch (error) {
      fail(error);
    }
  }

  /** The proxy that is asked for the whole URL. One that only carries connections is the gate's business. */
  #askedProxy({ target }: AbsoluteTarget): Upstream | undefined {
    const upstream = this.#gate.route(target);
    return upstream?.scheme === 'socks5' ? undefined : upstream;
  }

  /** The browser's connection is gone. */
  close(): void {
    this.#agent?.destroy();
  }

  #send(exchange: Exchange, mayResend: boolean): void {
    const { request, response, wanted, hasBody, fail } = exchange;
    // A kept connection may be closing just now. A request without a body is then sent again; one with a body cannot
    // be, so it never goes out on a kept one.
    this.#agent ??= new GateAgent(this.#gate, this.#bigReads);
    this.#agent.keepOnly(hasBody ? undefined : wanted.target);
    const outgoing = this.#request(this.#agent, exchange);
    if (!outgoing) return;
    let answered = false;
    const onError = (error: unknown): void => {
      if (answered || response.destroyed) return;
      answered = true;
      if (mayResend && outgoing.reusedSocket && !hasBody) this.#send(exchange, false);
      else fail(error);
    };
    outgoing.on('error', onError);
    outgoing.on('continue', () => response.writeContinue());
    const broken = (error: unknown): void => {
      fail(error);
      outgoing.destroy();
    };
    const onUpgrade = (_: IncomingMessage, socket: Duplex): void => {
      socket.destroy();
      onError(new Failed('bad_answer'));
    };
    const onResponse = (incoming: IncomingMessage): void => {
      answered = true;
      // Answered before all of the body was read: the rest is not waited for.
      if (!request.complete) response.shouldKeepAlive = false;
      passBack({ incoming, response, outgoing }, exchange.proxy, fail);
    };
    outgoing.on('upgrade', guarded(broken, onUpgrade));
    outgoing.on('response', guarded(broken, onResponse));
    response.once('close', () => {
      if (!response.writableFinished || !outgoing.writableEnded) outgoing.destroy();
    });
    if (hasBody) passOn(request, outgoing);
    else outgoing.end();
  }

  #request(agent: GateAgent, { request, wanted, proxy, fail }: Exchange): ClientRequest | undefined {
    const { target, host, path } = wanted;
    const method = request.method ?? 'GET';
    const user = proxy && proxyAuthorization(proxy);
    const args: GateRequestArgs = {
      agent,
      host: target.hostname,
      port: target.port,
      method,
      path: proxy ? `http://${host}${path}` : path,
      headers: [
        ...requestHeaders(method, host, request.rawHeaders),
        ...(user === undefined ? [] : ['Proxy-Authorization', user]),
      ],
      maxHeaderSize: this.#limits.headBytesMax,
      upstream: proxy,
    };
    try {
      const outgoing = send(args);
      // Zero is no limit by count: a silently shortened list is worse, and the bytes are bounded.
      outgoing.maxHeadersCount = 0;
      return outgoing;
    } catch (error) {
      fail(new Failed('bad_request', error));
      return undefined;
    }
  }
}

/** Sends a head without waiting for a body. `flushHeaders` would write bytes above 127 as UTF-8, twice encoded then. */
const NOTHING = Buffer.alloc(0);

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly wanted: AbsoluteTarget;
  readonly hasBody: boolean;
  readonly proxy: Upstream | undefined;
  readonly fail: (error: unknown) => void;
}

/** Not `pipeline`: when the outside breaks off, the browser's connection must live on to be told so. */
function passOn(request: IncomingMessage, outgoing: ClientRequest): void {
  outgoing.write(NOTHING);
  request.pipe(outgoing);
}

const PROXY_AUTHENTICATION_REQUIRED = 407;

function passBack(passing: Passing, proxy: Upstream | undefined, fail: (error: unknown) => void): void {
  const { incoming, response } = passing;
  incoming.on('error', () => {
    if (!response.writableEnded) response.destroy();
  });
  const status = incoming.statusCode ?? 0;
  try {
    // From an origin it would make the browser ask its user for the password of a proxy.
    if (status === PROXY_AUTHENTICATION_REQUIRED)
      throw proxy ? new ProxyFailed('proxy_refused_user', proxy.name) : new Failed('bad_answer');
    response.sendDate = false;
    const headers = endToEnd(incoming.rawHeaders);
    if (inChunks(passing)) headers.push('Transfer-Encoding', 'chunked');
    response.writeHead(status, incoming.statusMessage, headers);
  } catch (error) {
    incoming.destroy();
    fail(error instanceof Failed ? error : new Failed('bad_answer', error));
    return;
  }
  // The parser still holds what came along with the head.
  process.nextTick(() => {
    if (!incoming.destroyed && !response.destroyed) passBody(passing);
  });
}

/** What came in chunks goes on in chunks, each as large as it was, unless it came in several pieces. */
const inChunks = ({ incoming, response }: Passing): boolean =>
  incoming.headers['transfer-encoding'] === 'chunked' && response.req.httpVersion === '1.1';

function passChunks({ incoming, response }: Passing): void {
  const { socket } = response;
  socket?.cork();
  incoming.on('data', (piece: Buffer) => response.write(piece));
  incoming.once('end', () => {
    response.end();
    socket?.uncork();
  });
}

function passBody(passing: Passing): void {
  const { incoming, response } = passing;
  // All of it came at once, and goes on at once: each write of its own wakes the browser.
  if (incoming.complete) {
    if (inChunks(passing)) passChunks(passing);
    else response.end(incoming.read());
    return;
  }
  // The head goes without waiting: an event stream may have nothing to say for a long time.
  response.write(NOTHING);
  if (!pour(passing)) stream(passing);
}

function stream({ incoming, response }: Passing): void {
  reuseMemory(incoming, response);
  pipeline(incoming, response, () => {});
}

/** A piece that stands in none of the streams was copied by the kernel. */
function reuseMemory(incoming: IncomingMessage, response: ServerResponse): void {
  const { socket } = incoming;
  if (!(socket instanceof RequestSocket)) return;
  socket.reuseWhen(() => incoming.readableLength === 0 && response.writableLength === 0);
  incoming.once('close', () => socket.reuseWhen(() => false));
}

/**
 * Tells the browser why there is no answer. A refusal is a page that says so. What failed on the way looks as it does
 * without a proxy: the connection breaks off, and the browser has an error and no answer.
 */
export function sendAnswer(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const answer = answerTo(error);
  if (error instanceof Refused || (error instanceof Failed && error.kind === 'bad_request'))
    sendPage(request, response, answer);
  else breakOff(request.socket, answer, endingOf(error));
}

function sendPage(request: IncomingMessage, response: ServerResponse, { status, header, text }: Answer): void {
  const body = Buffer.from(text);
  response.sendDate = false;
  // A body that nobody will read is not read to its end just to keep the connection.
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

type Ending = 'reset' | 'end' | 'nonsense';

/** What the host did, as far as there was one. */
function endingOf(error: unknown): Ending {
  if (error instanceof Failed) return error.kind === 'bad_answer' ? 'nonsense' : 'reset';
  if (!(error instanceof Error && 'code' in error)) return 'reset';
  if (typeof error.code === 'string' && error.code.startsWith('HPE_')) return 'nonsense';
  // Node's own, for a host that closed the connection without an answer: a reset one has the name of a system call.
  return error.code === 'ECONNRESET' && !('syscall' in error) ? 'end' : 'reset';
}

/** No browser takes a NUL in a head. */
const NONSENSE = 'HTTP/1.1 502 \0\r\n\r\n';

/**
 * The interim answer names the failure for those who read the connection. To a browser it says that an answer has begun:
 * without it the request would be sent again where its connection had served one before, and a server could act twice.
 */
function breakOff(browser: Socket, { header }: Answer, ending: Ending): void {
  if (!browser.writable) {
    browser.destroy();
    return;
  }
  const interim = `HTTP/1.1 100 Continue\r\n${header.join(': ')}\r\n\r\n`;
  if (ending === 'reset') {
    browser.write(interim);
    browser.resetAndDestroy();
  } else browser.end(ending === 'end' ? interim : interim + NONSENSE, () => browser.destroy());
}
