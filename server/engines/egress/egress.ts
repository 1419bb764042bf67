// The egress proxy of one session: serves the connections of its browser (CONNECT and plain HTTP), which have no other
// way out. Decides nothing: the policy does, at the gate.
import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import { guarded } from '../../kit/guard.ts';
import type { Log } from '../../kit/log.ts';
import type { Closeable } from '../../kit/scope.ts';
import { within } from '../../kit/wait.ts';
import { BigReads } from './big-reads.ts';
import { answerTo, Failed, ProxyFailed, type ProxyTrouble, type RefusalRule, Refused } from './failure.ts';
import { Forwarder, sendAnswer } from './forwarder.ts';
import { Gate } from './gate.ts';
import { EGRESS_LIMITS, type EgressLimits } from './limits.ts';
import { Links } from './links.ts';
import type { EgressPolicy } from './policy.ts';
import type { Resolve } from './resolve.ts';
import { OwnAddress, type SelfRoute } from './self-route.ts';
import { absoluteTarget, authorityTarget, type Target } from './target.ts';
import { join, OutsideSocket } from './tunnel.ts';

export interface EgressParts {
  /** Listening already. Its 'connection' event is ours from now on; closing it stays with its owner. */
  readonly server: Server;
  readonly policy: EgressPolicy;
  readonly resolve: Resolve;
  readonly log: Log;
  readonly clock: Clock;
  readonly self?: SelfRoute;
  readonly listener?: EgressListener;
  readonly limits?: Partial<EgressLimits>;
}

export interface EgressListener {
  refused?(refusal: Refusal): void;
  proxyFailed?(failure: ProxyFailure): void;
}

export interface Refusal {
  readonly at: Date;
  readonly rule: RefusalRule;
  readonly via: 'connect' | 'http';
  readonly hostname: string;
  readonly port: number;
}

export interface ProxyFailure {
  readonly at: Date;
  /** The name of the proxy, never its address. */
  readonly proxy: string;
  readonly trouble: ProxyTrouble;
  readonly hostname: string;
}

export interface EgressCounters {
  /** From the session to the outside, and back, as the sockets outside counted them. */
  readonly bytesUp: number;
  readonly bytesDown: number;
  /** Those of both that went by way of other proxies. */
  readonly bytesByProxy: number;
  /** Connections to the outside: all there were, and those there are. */
  readonly connections: number;
  readonly connectionsOpen: number;
  readonly refusals: Readonly<Partial<Record<RefusalRule, number>>>;
}

export interface Egress extends Closeable {
  counters(): EgressCounters;
  /** Who hears of refusals from now on. */
  listen(listener: EgressListener): void;
  /** From now on, also for connections that stand. */
  replacePolicy(policy: EgressPolicy): void;
  /** Ends every connection. Connections that still arrive are closed at once. */
  close(): Promise<void>;
}

export function openEgress(parts: EgressParts): Egress {
  return new SessionEgress(parts);
}

class SessionEgress implements Egress {
  readonly #parts: EgressParts;
  readonly #limits: EgressLimits;
  readonly #links = new Links();
  readonly #bigReads: BigReads;
  readonly #gate: Gate;
  readonly #own: OwnAddress | undefined;
  readonly #http: HttpServer;
  readonly #browser = new Map<Socket, Forwarder>();
  readonly #refusals = new Map<RefusalRule, number>();
  readonly #closing = new AbortController();
  #listener: EgressListener;

  constructor(parts: EgressParts) {
    this.#parts = parts;
    this.#listener = parts.listener ?? {};
    this.#limits = { ...EGRESS_LIMITS, ...parts.limits };
    this.#bigReads = new BigReads(this.#limits.bigReadsMax);
    this.#gate = new Gate({ ...parts, links: this.#links, limits: this.#limits });
    this.#own = parts.self && new OwnAddress(this.#guardedRoute(parts.self), this.#limits);
    this.#http = this.#reader();
    parts.server.removeAllListeners('connection');
    const arrived = (socket: Socket): void => this.#arrived(socket);
    parts.server.on(
      'connection',
      guarded((error, [socket]) => this.#broken(error, socket), arrived),
    );
    void this.#sweep();
  }

  counters(): EgressCounters {
    return {
      bytesUp: this.#links.bytesUp,
      bytesDown: this.#links.bytesDown,
      bytesByProxy: this.#links.bytesByProxy,
      connections: this.#links.opened,
      connectionsOpen: this.#links.open,
      refusals: Object.fromEntries(this.#refusals),
    };
  }

  listen(listener: EgressListener): void {
    this.#listener = listener;
  }

  replacePolicy(policy: EgressPolicy): void {
    this.#gate.replacePolicy(policy);
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(new Error('the session ended'));
    this.#http.close();
    this.#links.endWhere(() => true);
    const closed = Promise.all([...this.#browser.keys()].map(destroyed));
    await within(CLOSE_MS, "the browser's connections to close", () => closed);
  }

  /** Node's HTTP parser in its strict form, for connections that we hand to it. */
  #reader(): HttpServer {
    const http = createServer({
      maxHeaderSize: this.#limits.headBytesMax,
      headersTimeout: this.#limits.headMs,
      // A body may take as long as it moves; idleness is looked after by the sweep.
      requestTimeout: 0,
      keepAliveTimeout: this.#limits.unusedMs,
      connectionsCheckingInterval: Math.min(this.#limits.sweepMs, this.#limits.headMs),
    });
    // Zero is no limit by count: a silently shortened list is worse, and the bytes are bounded.
    http.maxHeadersCount = 0;
    const broken = (error: unknown, [{ socket }]: readonly [IncomingMessage, ...unknown[]]): void =>
      this.#broken(error, socket);
    const plain = (request: IncomingMessage, response: ServerResponse): void => this.#plain(request, response);
    const connect = (request: IncomingMessage, stream: Duplex, head: Buffer): void =>
      this.#connect(request, stream, head);
    const unreadable = (error: Error, stream: Duplex): void => this.#unreadable(error, stream);
    http.on('request', guarded(broken, plain));
    // Expect: 100-continue is passed on, and the outside says whether to go on.
    http.on('checkContinue', guarded(broken, plain));
    http.on('connect', guarded(broken, connect));
    http.on(
      'clientError',
      guarded((error, [, stream]) => this.#broken(error, stream), unreadable),
    );
    // It never listens itself, and only that event starts its watch over slow heads.
    http.emit('listening');
    return http;
  }

  #arrived(socket: Socket): void {
    socket.on('error', () => socket.destroy());
    if (this.#closing.signal.aborted) {
      socket.destroy();
      return;
    }
    if (this.#browser.size >= this.#limits.connectionsMax) {
      this.#count('too_many_connections');
      socket.destroy();
      return;
    }
    const forwarder = new Forwarder(this.#gate, this.#bigReads, this.#limits);
    this.#browser.set(socket, forwarder);
    socket.once('close', () => {
      this.#browser.delete(socket);
      forwarder.close();
    });
    // One side of a tunnel may end before the other.
    socket.allowHalfOpen = true;
    socket.setNoDelay(true);
    socket.setTimeout(this.#limits.unusedMs);
    this.#http.emit('connection', socket);
  }

  /** What the browser said, or was answered, could not be handled, for a reason that is ours: that connection ends. */
  #broken(error: unknown, connection: Duplex): void {
    this.#parts.log.error('egress.connection_failed', { error });
    connection.destroy();
  }

  #plain(request: IncomingMessage, response: ServerResponse): void {
    // How long an answer may take is the sweep's business.
    request.socket.setTimeout(0);
    response.on('error', () => response.destroy());
    request.on('error', () => response.destroy());
    const forwarder = this.#browser.get(request.socket);
    if (!forwarder || forwarder.inFlight >= this.#limits.requestsPerConnectionMax) {
      request.socket.destroy();
      return;
    }
    const wanted = absoluteTarget(request.url ?? '');
    if (!wanted) return sendAnswer(request, response, new Failed('bad_request'));
    const onFailure = (error: unknown): void => this.#failed(error, wanted.target, 'http');
    if (!this.#own?.is(wanted.target)) return forwarder.forward(request, response, wanted, onFailure);
    const error = new Refused('own_service');
    onFailure(error);
    sendAnswer(request, response, error);
  }

  #connect(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    const forwarder = stream instanceof Socket ? this.#browser.get(stream) : undefined;
    // A tunnel in the middle of unanswered requests would carry their answers.
    if (!(stream instanceof Socket) || !forwarder || forwarder.inFlight > 0) {
      stream.destroy();
      return;
    }
    const target = authorityTarget(request.url ?? '');
    if (!target) return turnDown(stream, new Failed('bad_request'));
    this.#tunnel(stream, head, target).catch(error => {
      this.#failed(error, target, 'connect');
      turnDown(stream, error);
    });
  }

  async #tunnel(browser: Socket, head: Buffer, target: Target): Promise<void> {
    browser.setTimeout(0);
    if (head.length > 0) browser.unshift(head);
    if (this.#own?.is(target)) {
      browser.write(ESTABLISHED);
      this.#own.accept(browser);
      return;
    }
    const gone = new AbortController();
    const onClose = (): void => gone.abort(new Error('the browser closed the connection'));
    browser.once('close', onClose);
    const outside = await this.#gate.open(target, () => new OutsideSocket(this.#bigReads), gone.signal);
    browser.off('close', onClose);
    if (browser.destroyed) {
      outside.destroy();
      return;
    }
    browser.write(ESTABLISHED);
    join(browser, outside);
  }

  #guardedRoute(self: SelfRoute): SelfRoute {
    const accept = (connection: Duplex): void => {
      if (!this.#guarded(() => self.accept(connection))) connection.destroy();
    };
    return { ...self, accept };
  }

  #unreadable(error: NodeJS.ErrnoException, stream: Duplex): void {
    const forwarder = stream instanceof Socket ? this.#browser.get(stream) : undefined;
    if (!stream.writable || error.code === 'ECONNRESET' || (forwarder?.inFlight ?? 0) > 0) stream.destroy();
    else stream.end(emptyAnswer(UNREADABLE[error.code ?? ''] ?? 400), () => stream.destroy());
  }

  #failed(error: unknown, target: Target, via: Refusal['via']): void {
    if (error instanceof Refused) return this.#refused(error.rule, target, via);
    const { hostname, port } = target;
    const { clock, log } = this.#parts;
    log.debug('egress.failed', { hostname, port, via, reason: reason(error) });
    if (!(error instanceof ProxyFailed)) return;
    const { proxy, trouble } = error;
    this.#guarded(() => this.#listener.proxyFailed?.({ at: clock.now(), proxy, trouble, hostname }));
  }

  #refused(rule: RefusalRule, { hostname, port }: Target, via: Refusal['via']): void {
    const { clock, log } = this.#parts;
    // A browser that waits for its session asks for a thing or two by itself.
    if (this.#count(rule) <= this.#limits.refusalsLoggedMax && rule !== 'no_session')
      log.info('egress.refused', { hostname, port, via, rule });
    this.#guarded(() => this.#listener.refused?.({ at: clock.now(), rule, via, hostname, port }));
  }

  /** Whoever was handed to us may throw; here it would end the process, with all sessions. */
  #guarded(call: () => void): boolean {
    try {
      call();
      return true;
    } catch (error) {
      this.#parts.log.error('egress.listener_failed', { reason: reason(error) });
      return false;
    }
  }

  #count(rule: RefusalRule): number {
    const count = (this.#refusals.get(rule) ?? 0) + 1;
    this.#refusals.set(rule, count);
    return count;
  }

  async #sweep(): Promise<void> {
    const { clock } = this.#parts;
    while (!this.#closing.signal.aborted) {
      await clock.sleep(this.#limits.sweepMs, this.#closing.signal).catch(() => {});
      this.#links.endIdle(clock.monotonicMs(), this.#limits);
    }
  }
}

const CLOSE_MS = 5000;

const ESTABLISHED = 'HTTP/1.1 200 Connection Established\r\n\r\n';

const UNREADABLE: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

const emptyAnswer = (status: number): string => `HTTP/1.1 ${status} \r\ncontent-length: 0\r\nconnection: close\r\n\r\n`;

function turnDown(browser: Socket, error: unknown): void {
  if (!browser.writable) {
    browser.destroy();
    return;
  }
  const { status, header, text } = answerTo(error);
  const lines = [
    `HTTP/1.1 ${status} ${status === 403 ? 'Forbidden' : 'No Tunnel'}`,
    header.join(': '),
    'content-type: text/plain; charset=utf-8',
    `content-length: ${Buffer.byteLength(text)}`,
    'connection: close',
  ];
  browser.end(`${lines.join('\r\n')}\r\n\r\n${text}`, () => browser.destroy());
}

function destroyed(socket: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.once('close', () => resolve());
  socket.destroy();
  return promise;
}
