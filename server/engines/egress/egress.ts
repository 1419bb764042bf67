// The egress proxy of one session. It serves CONNECT requests and plain HTTP requests of the browser, which has no
// other way to the network. The gate applies the policy, which decides what is allowed.
import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { reason } from '../../kit/fault.ts';
import { guardListener } from '../../kit/guard.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Closeable } from '../../kit/scope.ts';
import { withTimeout } from '../../kit/wait.ts';
import { BigReads } from './big-reads.ts';
import type { OutboundEndpoints } from './departures.ts';
import {
  errorResponse,
  FailedError,
  type FailureKind,
  ProxyFailedError,
  type ProxyFailureKind,
  type RefusalRule,
  RefusedError,
} from './failure.ts';
import { Forwarder, sendErrorResponse } from './forwarder.ts';
import { Gate } from './gate.ts';
import { EGRESS_LIMITS, type EgressLimits } from './limits.ts';
import { OutboundConnections } from './outbound.ts';
import type { EgressPolicy } from './policy.ts';
import type { Resolve } from './resolve.ts';
import { OwnAddress, type SelfRoute } from './self-route.ts';
import { parseAbsoluteTarget, parseAuthority, type Target } from './target.ts';
import { join, OutsideSocket } from './tunnel.ts';

export interface EgressOptions extends Pick<Runtime, 'clock' | 'log'> {
  /**
   * A server that is already listening. The proxy replaces the server's 'connection' listeners, and does not close the
   * server.
   */
  readonly server: Server;
  readonly policy: EgressPolicy;
  readonly resolve: Resolve;
  readonly self?: SelfRoute;
  /** Records the local endpoints of the outbound connections. */
  readonly outboundEndpoints?: OutboundEndpoints;
  readonly listener?: EgressListener;
  readonly limits?: Partial<EgressLimits>;
}

export interface EgressListener {
  /**
   * Returns the string that is logged instead of `text`, which may contain a host name. A page can put secrets into a
   * host name. If absent, `text` is logged unchanged.
   */
  redactText?(text: string): string;
  refused?(refusal: Refusal): void;
  /**
   * Called when a host could not be reached or did not send a valid response, if the current policy allows the host.
   */
  failed?(failure: HostFailure): void;
  proxyFailed?(failure: ProxyFailure): void;
}

export interface Refusal {
  readonly at: Date;
  readonly rule: RefusalRule;
  readonly via: 'connect' | 'http';
  readonly hostname: string;
  readonly port: number;
}

export interface HostFailure {
  readonly at: Date;
  readonly kind: FailureKind;
  readonly hostname: string;
}

export interface ProxyFailure {
  readonly at: Date;
  /** The name of the proxy, never its address. */
  readonly proxy: string;
  readonly kind: ProxyFailureKind;
  readonly hostname: string;
}

export interface EgressCounters {
  /**
   * Bytes sent from the session to the outside (up) and received from there (down), as counted by the outbound sockets.
   */
  readonly bytesUp: number;
  readonly bytesDown: number;
  /** The part of `bytesUp` and `bytesDown` that went through upstream proxies. */
  readonly bytesByProxy: number;
  /** The number of outbound connections that were opened, and how many of them are still open. */
  readonly connections: number;
  readonly connectionsOpen: number;
  readonly refusals: Readonly<Partial<Record<RefusalRule, number>>>;
}

export interface Egress extends Closeable {
  counters(): EgressCounters;
  /** Replaces the listener. Later refusals and failures are reported to the new one. */
  replaceListener(listener: EgressListener): void;
  /** Replaces the policy. The new policy applies to open connections too. */
  replacePolicy(policy: EgressPolicy): void;
  /** Closes every connection. New connections are closed at once. */
  close(): Promise<void>;
}

export function openEgress(options: EgressOptions): Egress {
  return new SessionEgress(options);
}

class SessionEgress implements Egress {
  readonly #options: EgressOptions;
  readonly #limits: EgressLimits;
  readonly #outbound: OutboundConnections;
  readonly #bigReads: BigReads;
  readonly #gate: Gate;
  readonly #ownAddress: OwnAddress | undefined;
  readonly #httpServer: HttpServer;
  readonly #forwarders = new Map<Socket, Forwarder>();
  readonly #refusals = new Map<RefusalRule, number>();
  readonly #closeController = new AbortController();
  #listener: EgressListener;

  constructor(options: EgressOptions) {
    this.#options = options;
    this.#listener = options.listener ?? {};
    this.#limits = { ...EGRESS_LIMITS, ...options.limits };
    this.#outbound = new OutboundConnections(options.outboundEndpoints);
    this.#bigReads = new BigReads(this.#limits.bigReadsMax);
    this.#gate = new Gate({ ...options, outbound: this.#outbound, limits: this.#limits });
    this.#ownAddress = options.self && new OwnAddress(this.#guardedRoute(options.self), this.#limits);
    this.#httpServer = this.#createHttpServer();
    options.server.removeAllListeners('connection');
    const onConnection = (socket: Socket): void => this.#onConnection(socket);
    options.server.on(
      'connection',
      guardListener((error, [socket]) => this.#onInternalError(error, socket), onConnection),
    );
    void this.#sweep();
  }

  counters(): EgressCounters {
    return {
      bytesUp: this.#outbound.bytesUp,
      bytesDown: this.#outbound.bytesDown,
      bytesByProxy: this.#outbound.bytesByProxy,
      connections: this.#outbound.totalCount,
      connectionsOpen: this.#outbound.openCount,
      refusals: Object.fromEntries(this.#refusals),
    };
  }

  replaceListener(listener: EgressListener): void {
    this.#listener = listener;
  }

  replacePolicy(policy: EgressPolicy): void {
    this.#gate.replacePolicy(policy);
  }

  async close(): Promise<void> {
    if (this.#closeController.signal.aborted) return;
    this.#closeController.abort(new Error('the session ended'));
    this.#httpServer.close();
    this.#outbound.closeWhere(() => true);
    const closePromise = Promise.all([...this.#forwarders.keys()].map(destroySocket));
    await withTimeout(CLOSE_TIMEOUT_MS, "the browser's connections to close", () => closePromise);
  }

  /** Node's HTTP server with its strict parser. It does not listen; connections are passed to it. */
  #createHttpServer(): HttpServer {
    const http = createServer({
      maxHeaderSize: this.#limits.headBytesMax,
      headersTimeout: this.#limits.headMs,
      // No limit applies to a body that makes progress. The sweep closes idle connections.
      requestTimeout: 0,
      keepAliveTimeout: this.#limits.unusedMs,
      connectionsCheckingInterval: Math.min(this.#limits.sweepMs, this.#limits.headMs),
    });
    // 0 means no limit. With a limit, Node would silently drop the excess headers. `maxHeaderSize` limits the bytes.
    http.maxHeadersCount = 0;
    const onInternalError = (error: unknown, [{ socket }]: readonly [IncomingMessage, ...unknown[]]): void =>
      this.#onInternalError(error, socket);
    const onPlainRequest = (request: IncomingMessage, response: ServerResponse): void =>
      this.#onRequest(request, response);
    const onConnectRequest = (request: IncomingMessage, stream: Duplex, head: Buffer): void =>
      this.#onConnect(request, stream, head);
    const onClientError = (error: Error, stream: Duplex): void => this.#onClientError(error, stream);
    http.on('request', guardListener(onInternalError, onPlainRequest));
    // `Expect: 100-continue` is forwarded, and the host answers it.
    http.on('checkContinue', guardListener(onInternalError, onPlainRequest));
    http.on('connect', guardListener(onInternalError, onConnectRequest));
    http.on(
      'clientError',
      guardListener((error, [, stream]) => this.#onInternalError(error, stream), onClientError),
    );
    // The server itself never listens, so this event starts its check of headersTimeout.
    http.emit('listening');
    return http;
  }

  #onConnection(socket: Socket): void {
    socket.on('error', () => socket.destroy());
    if (this.#closeController.signal.aborted) {
      socket.destroy();
      return;
    }
    if (this.#forwarders.size >= this.#limits.connectionsMax) {
      this.#count('too_many_connections');
      socket.destroy();
      return;
    }
    const forwarder = new Forwarder(this.#gate, this.#bigReads, this.#limits);
    this.#forwarders.set(socket, forwarder);
    socket.once('close', () => {
      this.#forwarders.delete(socket);
      forwarder.close();
    });
    // One side of a tunnel may end before the other.
    socket.allowHalfOpen = true;
    socket.setNoDelay(true);
    socket.setTimeout(this.#limits.unusedMs);
    this.#httpServer.emit('connection', socket);
  }

  /** Handles an error caused by a bug in this code. Closes only the connection. */
  #onInternalError(error: unknown, connection: Duplex): void {
    this.#options.log.error('egress.connection_failed', { error });
    connection.destroy();
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    // The sweep closes connections that wait too long for a response.
    request.socket.setTimeout(0);
    response.on('error', () => response.destroy());
    request.on('error', () => response.destroy());
    const forwarder = this.#forwarders.get(request.socket);
    if (!forwarder || forwarder.inFlight >= this.#limits.requestsPerConnectionMax) {
      request.socket.destroy();
      return;
    }
    const parsedTarget = parseAbsoluteTarget(request.url ?? '');
    if (!parsedTarget) return sendErrorResponse(request, response, new FailedError('bad_request'));
    const onFailure = (error: unknown): void => this.#logFailure(error, parsedTarget.target, 'http');
    if (!this.#ownAddress?.matches(parsedTarget.target))
      return forwarder.forward(request, response, parsedTarget, onFailure);
    const error = new RefusedError('own_service');
    onFailure(error);
    sendErrorResponse(request, response, error);
  }

  #onConnect(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    const forwarder = stream instanceof Socket ? this.#forwarders.get(stream) : undefined;
    // Plain requests must not be pending, because their responses would end up inside the tunnel.
    if (!(stream instanceof Socket) || !forwarder || forwarder.inFlight > 0) {
      stream.destroy();
      return;
    }
    const target = parseAuthority(request.url ?? '');
    if (!target) return rejectConnect(stream, new FailedError('bad_request'));
    this.#tunnel(stream, head, target).catch(error => {
      // A failure is not reported if the browser has already closed the connection, because that may have caused the
      // failure. A refusal is always reported.
      if (!stream.destroyed || error instanceof RefusedError) this.#logFailure(error, target, 'connect');
      rejectConnect(stream, error);
    });
  }

  async #tunnel(browser: Socket, head: Buffer, target: Target): Promise<void> {
    browser.setTimeout(0);
    if (head.length > 0) browser.unshift(head);
    if (this.#ownAddress?.matches(target)) {
      browser.write(ESTABLISHED_RESPONSE);
      this.#ownAddress.accept(browser);
      return;
    }
    const closeController = new AbortController();
    const onClose = (): void => closeController.abort(new Error('the browser closed the connection'));
    browser.once('close', onClose);
    const outsideSocket = await this.#gate.open(
      target,
      () => new OutsideSocket(this.#bigReads),
      closeController.signal,
    );
    browser.off('close', onClose);
    if (browser.destroyed) {
      outsideSocket.destroy();
      return;
    }
    browser.write(ESTABLISHED_RESPONSE);
    join(browser, outsideSocket);
  }

  #guardedRoute(self: SelfRoute): SelfRoute {
    const accept = (connection: Duplex): void => {
      if (!this.#callSafely(() => self.accept(connection))) connection.destroy();
    };
    return { ...self, accept };
  }

  #onClientError(error: NodeJS.ErrnoException, stream: Duplex): void {
    const forwarder = stream instanceof Socket ? this.#forwarders.get(stream) : undefined;
    if (!stream.writable || error.code === 'ECONNRESET' || (forwarder?.inFlight ?? 0) > 0) stream.destroy();
    else stream.end(emptyResponse(CLIENT_ERROR_STATUSES[error.code ?? ''] ?? 400), () => stream.destroy());
  }

  #logFailure(error: unknown, target: Target, via: Refusal['via']): void {
    if (error instanceof RefusedError) return this.#reportRefusal(error.rule, target, via);
    const { hostname, port } = target;
    const { clock, log } = this.#options;
    log.debug('egress.failed', { hostname: this.#redact(hostname), port, via, reason: this.#redact(reason(error)) });
    // If the host is refused by now, the failure comes from a change of the policy, which closes connections.
    if (this.#gate.refuses(hostname)) return;
    const failure = { at: clock.now(), hostname };
    if (error instanceof ProxyFailedError) {
      const { proxy, proxyFailureKind: kind } = error;
      this.#callSafely(() => this.#listener.proxyFailed?.({ ...failure, proxy, kind }));
      return;
    }
    const kind = hostFailureOf(error);
    if (kind) this.#callSafely(() => this.#listener.failed?.({ ...failure, kind }));
  }

  #reportRefusal(rule: RefusalRule, { hostname, port }: Target, via: Refusal['via']): void {
    const { clock, log } = this.#options;
    // A warm browser sends some requests on its own. Refusals of these requests are not logged.
    if (this.#count(rule) <= this.#limits.refusalsLoggedMax && rule !== 'no_session')
      log.info('egress.refused', { hostname: this.#redact(hostname), port, via, rule });
    this.#callSafely(() => this.#listener.refused?.({ at: clock.now(), rule, via, hostname, port }));
  }

  #redact(text: string): string {
    return this.#listener.redactText?.(text) ?? text;
  }

  /** Calls a listener and catches its exceptions, which would otherwise end the server process. */
  #callSafely(call: () => void): boolean {
    try {
      call();
      return true;
    } catch (error) {
      this.#options.log.error('egress.listener_failed', { reason: reason(error) });
      return false;
    }
  }

  #count(rule: RefusalRule): number {
    const count = (this.#refusals.get(rule) ?? 0) + 1;
    this.#refusals.set(rule, count);
    return count;
  }

  async #sweep(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#closeController.signal.aborted) {
      await clock.sleep(this.#limits.sweepMs, this.#closeController.signal).catch(() => {});
      this.#outbound.closeIdle(clock.monotonicMs(), this.#limits);
    }
  }
}

const CLOSE_TIMEOUT_MS = 5000;

const ESTABLISHED_RESPONSE = 'HTTP/1.1 200 Connection Established\r\n\r\n';

const CLIENT_ERROR_STATUSES: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

const emptyResponse = (status: number): string =>
  `HTTP/1.1 ${status} \r\ncontent-length: 0\r\nconnection: close\r\n\r\n`;

function rejectConnect(browser: Socket, error: unknown): void {
  if (!browser.writable) {
    browser.destroy();
    return;
  }
  const { status, header, text } = errorResponse(error);
  const lines = [
    `HTTP/1.1 ${status} ${status === 403 ? 'Forbidden' : 'No Tunnel'}`,
    header.join(': '),
    'content-type: text/plain; charset=utf-8',
    `content-length: ${Buffer.byteLength(text)}`,
    'connection: close',
  ];
  browser.end(`${lines.join('\r\n')}\r\n\r\n${text}`, () => browser.destroy());
}

function destroySocket(socket: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.once('close', () => resolve());
  socket.destroy();
  return promise;
}

/**
 * Returns why the host could not be used. Undefined for a malformed request and for errors without a code, which do not
 * come from a connection.
 */
function hostFailureOf(error: unknown): FailureKind | undefined {
  if (error instanceof FailedError) return error.kind === 'bad_request' ? undefined : error.kind;
  return error instanceof Error && 'code' in error ? 'bad_answer' : undefined;
}
