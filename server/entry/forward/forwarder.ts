// Passes requests on to the host that owns the resource: HTTP requests over persistent connections, and each WebSocket
// over its own connection. Bytes are copied as they arrive. Only the heads are parsed.
import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  request as overHttp,
  type ServerResponse,
} from 'node:http';
import { Agent as HttpsAgent, request as overHttps } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { TLSSocket } from 'node:tls';
import { fault } from '../../domain/faults.ts';
import type { PassOptions, PassOutcome, Peer } from '../../domain/fleet/forwarding.ts';
import { HOST_TOKEN_HEADER, type HostTokens } from '../../domain/fleet/host-tokens.ts';
import { LINE_HEADER, ticketText } from '../../domain/fleet/line-ticket.ts';
import { parseRefusal, REFUSAL_HEADER } from '../../domain/fleet/not-here.ts';
import { addressesOf } from '../../domain/identity/presented.ts';
import { reason } from '../../kit/fault.ts';
import { guardListener } from '../../kit/guard.ts';
import { loopWatch } from '../../kit/loop-watch.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Closeable } from '../../kit/scope.ts';

const CONNECT_TIMEOUT_MS = 3_000;
/**
 * A host that is restarting refuses connections for at most this long. A request can wait during this time, because
 * none of it has been sent yet.
 */
const RESTART_TIMEOUT_MS = 20_000;
const RETRY_INTERVAL_MS = 250;
/** How long a host that has left the fleet may take to respond to requests that it has already begun. */
const GONE_TIMEOUT_MS = 3_000;
/** Time limit for the client of a refused upgrade to close the connection. */
const REFUSAL_TIMEOUT_MS = 5_000;
const REFUSAL_BYTES_MAX = 64 * 1024;
const CONNECTIONS_MAX = 1024;
const FREE_SOCKETS_MAX = 64;
/** Persistent connections are reused for less time than the peer keeps them open. */
const KEEP_ALIVE_TIMEOUT_MS = 30_000;
const HOP_BY_HOP_HEADERS: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'expect'],
  ...[HOST_TOKEN_HEADER, LINE_HEADER],
]);

export interface ForwarderParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly tokens: HostTokens;
  readonly trustedProxies: readonly string[];
  /** Trusted certificate authorities as PEM. Undefined: the certificate authorities that Node trusts by default. */
  readonly authorities: () => string | undefined;
  /** Whether the host is still alive, so that a retry is worthwhile. */
  readonly isLiving: (host: Pick<Peer, 'id'>) => boolean;
}

export class Forwarder implements Closeable {
  readonly #parts: ForwarderParts;
  readonly #httpAgent = new HttpAgent(agentOptions);
  readonly #httpsAgent = new HttpsAgent(agentOptions);
  /** Requests that wait for a response, and sockets that are piped to a caller, each with its target host. */
  readonly #inFlight = new Map<ClientRequest | Duplex, Peer>();
  readonly #goneSince = new Map<Peer['id'], number>();

  constructor(parts: ForwarderParts) {
    this.#parts = parts;
  }

  async pass(
    targetPeer: Peer,
    request: IncomingMessage,
    { body, requestId, begin, ticket }: PassOptions,
  ): Promise<PassOutcome> {
    const line = ticket ? { [LINE_HEADER]: ticketText(ticket) } : {};
    const headers = { ...headersOf(request, body), 'x-request-id': requestId, ...line };
    const waitMs = ticket ? 0 : RESTART_TIMEOUT_MS;
    const peerRequest = await this.#connectRequest(targetPeer, request, headers, {
      waitMs,
      isShort: body !== undefined,
    }).catch(error => {
      if (ticket) return undefined;
      throw error;
    });
    if (!peerRequest) return 'unreached';
    if (request.socket.destroyed) {
      peerRequest.destroy();
      throw unreachableFault(targetPeer, new Error('the caller has disconnected'));
    }
    const whenResponded = waitForResponse(peerRequest);
    const onCallerGone = (): void => void peerRequest.destroy();
    request.socket.once('close', onCallerGone);
    this.#inFlight.set(peerRequest, targetPeer);
    try {
      if (body === undefined) request.pipe(peerRequest);
      else peerRequest.end(body);
      const peerResponse = await whenResponded.catch(error => Promise.reject(unreachableFault(targetPeer, error)));
      const refusalHeader = peerResponse.headers[REFUSAL_HEADER];
      if (typeof refusalHeader === 'string') {
        peerResponse.resume();
        return { refused: parseRefusal(refusalHeader) };
      }
      const response = begin();
      writeHead(response, peerResponse);
      await pipeline(peerResponse, response).catch(error => {
        this.#parts.log.debug('fleet.answer_cut', { hostId: targetPeer.id, reason: reason(error) });
        response.destroy();
      });
      return 'answered';
    } finally {
      request.socket.off('close', onCallerGone);
      this.#inFlight.delete(peerRequest);
    }
  }

  async passUpgrade(targetPeer: Peer, request: IncomingMessage, connection: Duplex, head: Buffer): Promise<void> {
    const headers = { ...headersOf(request, undefined), connection: 'Upgrade', upgrade: 'websocket' };
    const peerRequest = await this.#connectRequest(targetPeer, request, headers, {
      waitMs: RESTART_TIMEOUT_MS,
      isShort: true,
      isPersistent: false,
    });
    if (connection.destroyed) return void peerRequest.destroy();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onCallerGone = (): void => void peerRequest.destroy();
    connection.once('close', onCallerGone);
    this.#inFlight.set(peerRequest, targetPeer);
    peerRequest.once('error', error => reject(unreachableFault(targetPeer, error)));
    const fail = (error: unknown): void => {
      peerRequest.destroy();
      reject(unreachableFault(targetPeer, error));
    };
    peerRequest.once(
      'response',
      guardListener(fail, async (peerResponse: IncomingMessage) => {
        const timer = setTimeout(() => connection.destroy(), REFUSAL_TIMEOUT_MS);
        connection.once('close', () => clearTimeout(timer));
        const refusal = Buffer.concat([Buffer.from(headText(peerResponse)), await readRefusal(peerResponse)]);
        connection.end(refusal, () => connection.destroy());
        resolve();
      }),
    );
    peerRequest.once(
      'upgrade',
      guardListener(fail, (peerResponse: IncomingMessage, socket: Duplex, firstBytes: Buffer) => {
        connection.off('close', onCallerGone);
        this.#join(targetPeer, peerResponse, socket, firstBytes, connection, head);
        resolve();
      }),
    );
    peerRequest.end();
    await promise.finally(() => this.#inFlight.delete(peerRequest));
  }

  /**
   * Ends the connections to hosts that have not been alive for a few seconds. A host that is paused or cut off does not
   * close connections itself, and a host that has left still responds to requests that it has begun. Called whenever
   * the list of living hosts is updated.
   */
  dropLostHosts(): void {
    const { clock, isLiving } = this.#parts;
    const nowMs = clock.monotonicMs();
    for (const id of this.#goneSince.keys()) if (isLiving({ id })) this.#goneSince.delete(id);
    for (const [connection, { id }] of this.#inFlight) {
      if (isLiving({ id })) continue;
      const goneSinceMs = this.#goneSince.get(id) ?? nowMs;
      this.#goneSince.set(id, goneSinceMs);
      if (nowMs - goneSinceMs >= GONE_TIMEOUT_MS) connection.destroy(new Error('the host is no longer alive'));
    }
  }

  async close(): Promise<void> {
    for (const connection of this.#inFlight.keys()) connection.destroy();
    this.#httpAgent.destroy();
    this.#httpsAgent.destroy();
  }

  #join(
    targetPeer: Peer,
    peerResponse: IncomingMessage,
    socket: Duplex,
    firstBytes: Buffer,
    connection: Duplex,
    head: Buffer,
  ): void {
    const endWork = loopWatch.begin({ what: 'a forwarded connection' });
    const end = (): void => {
      endWork();
      this.#inFlight.delete(socket);
      socket.destroy();
      connection.destroy();
    };
    this.#inFlight.set(socket, targetPeer);
    for (const one of [socket, connection]) {
      if ('setNoDelay' in one) (one as Socket).setNoDelay(true);
      one.once('close', end);
      one.on('error', end);
    }
    connection.write(headText(peerResponse));
    if (firstBytes.length > 0) connection.write(firstBytes);
    if (head.length > 0) socket.write(head);
    socket.pipe(connection);
    connection.pipe(socket);
  }

  /**
   * Starts a request, and resolves when its connection is established. Waits for a host that is restarting, which is
   * safe because nothing has been sent yet.
   */
  async #connectRequest(
    targetPeer: Peer,
    request: IncomingMessage,
    headers: Record<string, string | string[]>,
    {
      waitMs,
      isShort,
      isPersistent = true,
    }: { readonly waitMs: number; readonly isShort: boolean; readonly isPersistent?: boolean },
  ): Promise<ClientRequest> {
    const { clock, isLiving } = this.#parts;
    const deadlineMs = clock.monotonicMs() + waitMs;
    for (;;) {
      const peerRequest = this.#begin(targetPeer, request, headers, isPersistent);
      const problem = await waitForConnect(peerRequest);
      if (!problem) return peerRequest;
      const isUntrusted = wasCertificateRefused(peerRequest);
      peerRequest.destroy();
      if (isUntrusted)
        this.#parts.log.warn('fleet.certificate_refused', { hostId: targetPeer.id, reason: reason(problem) });
      if (isUntrusted || clock.monotonicMs() >= deadlineMs || request.socket.destroyed || !isLiving(targetPeer))
        throw unreachableFault(targetPeer, problem);
      await clock.sleep(isShort ? RETRY_INTERVAL_MS : 2 * RETRY_INTERVAL_MS);
    }
  }

  #begin(
    targetPeer: Peer,
    request: IncomingMessage,
    headers: Record<string, string | string[]>,
    isPersistent: boolean,
  ): ClientRequest {
    const { tokens, trustedProxies, authorities } = this.#parts;
    const { ip, peer } = addressesOf(request, trustedProxies);
    const { method = 'GET', url: path = '/' } = request;
    const from = { ip, address: peer.address, ...(peer.port === undefined ? {} : { port: peer.port }) };
    const url = new URL(targetPeer.url);
    const isTls = url.protocol === 'https:';
    const ca = isTls ? authorities() : undefined;
    const options = {
      ...{ method, path, ...addressOf(url), ...(ca === undefined ? {} : { ca }) },
      headers: { ...headers, [HOST_TOKEN_HEADER]: tokens.make(targetPeer.id, { method, path }, from) },
      agent: isPersistent ? (isTls ? this.#httpsAgent : this.#httpAgent) : false,
    } as const;
    const peerRequest = isTls ? overHttps(options) : overHttp(options);
    // Without a listener, an error would end the process. Functions that wait for this request add their own listeners.
    peerRequest.on('error', () => {});
    return peerRequest;
  }
}

function addressOf({ protocol, hostname, port, pathname }: URL) {
  if (protocol === 'unix:') return { socketPath: decodeURIComponent(pathname), hostname: 'localhost' };
  const defaultPort = protocol === 'https:' ? 443 : 80;
  return { hostname: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? defaultPort : Number(port) };
}

const agentOptions = {
  ...{ keepAlive: true, maxSockets: CONNECTIONS_MAX, maxFreeSockets: FREE_SOCKETS_MAX, timeout: KEEP_ALIVE_TIMEOUT_MS },
  scheduling: 'lifo',
} as const;

/** Resolves with undefined when the connection is established, or with the error. */
function waitForConnect(clientRequest: ClientRequest): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const timer = setTimeout(
    () => resolve(new Error(`no connection within ${CONNECT_TIMEOUT_MS} ms`)),
    CONNECT_TIMEOUT_MS,
  );
  clientRequest.once('error', resolve);
  clientRequest.once('socket', socket => {
    socket.setTimeout(0);
    if (!socket.connecting) resolve(undefined);
    else socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => resolve(undefined));
  });
  return promise.finally(() => {
    clearTimeout(timer);
    clientRequest.off('error', resolve);
  });
}

/** Whether the host's certificate was refused. In that case nothing was sent, and a retry would not help. */
const wasCertificateRefused = ({ socket }: ClientRequest): boolean =>
  socket instanceof TLSSocket && Boolean(socket.authorizationError);

function waitForResponse(clientRequest: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  clientRequest.once('response', guardListener(reject, resolve));
  clientRequest.once('error', reject);
  clientRequest.once('close', () => reject(new Error('the connection was closed before the response')));
  promise.catch(() => {});
  return promise;
}

/** Reads the body of the response that refuses an upgrade. */
async function readRefusal(peerResponse: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of peerResponse) {
    bytes += chunk.length;
    if (bytes > REFUSAL_BYTES_MAX) throw new Error('the response that refuses the upgrade is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function headersOf({ headers }: IncomingMessage, body: Buffer | undefined): Record<string, string | string[]> {
  const passedHeaders: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !HOP_BY_HOP_HEADERS.has(name)) passedHeaders[name] = value;
  if (body === undefined) {
    // The body is passed on in the form in which it arrives: with its length, or in chunks.
    if (headers['transfer-encoding'] !== undefined) passedHeaders['transfer-encoding'] = 'chunked';
    return passedHeaders;
  }
  passedHeaders['content-length'] = String(body.length);
  return passedHeaders;
}

function writeHead(response: ServerResponse, { statusCode = 502, rawHeaders: raw }: IncomingMessage): void {
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = [raw[at], raw[at + 1]];
    if (!HOP_BY_HOP_HEADERS.has(name.toLowerCase())) response.appendHeader(name, value);
  }
  response.writeHead(statusCode);
}

function headText({ statusCode, statusMessage, rawHeaders: raw }: IncomingMessage): string {
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? '';
    if (name.toLowerCase() !== 'transfer-encoding') lines.push(`${name}: ${raw[at + 1]}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n`;
}

const unreachableFault = (targetPeer: Peer, cause: unknown): Error =>
  fault('host_unreachable', `The host ${targetPeer.id} does not respond.`, {
    advice: 'Send the request again in a few seconds. If the host is lost, its sessions end within 15 seconds.',
    cause,
  });
