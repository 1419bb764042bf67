// Accepts CDP clients. Each client is checked before the WebSocket upgrade. A refusal has a status and an error body,
// because clients show both to their users.
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { catalogueEntry, type ErrorCode, isErrorCode } from '../../../contract/errors.ts';
import { limitHeaders } from '../../../contract/limit-headers.ts';
import { errorBody } from '../../domain/error-body.ts';
import { fault } from '../../domain/faults.ts';
import type { Forwarding } from '../../domain/fleet/forwarding.ts';
import type { Lease } from '../../domain/handoffs/lease.ts';
import type { KeyUses, UsedKey } from '../../domain/identity/key-uses.ts';
import { presentedCredentialsOf } from '../../domain/identity/presented.ts';
import type { WaitingBytes } from '../../domain/limits/waiting-bytes.ts';
import type { DirectClient, LiveView } from '../../domain/live/live-view.ts';
import type { ReadLongMessage } from '../../domain/sessions/browser-host.ts';
import { CLIENT_CLOSES, type ClientKind, type LiveSession } from '../../domain/sessions/live.ts';
import type { ConnectCredentials, ConnectGrant, SessionConnector } from '../../domain/sessions/session-connector.ts';
import { callAt } from '../../kit/clock.ts';
import { Fault, isFault, reason } from '../../kit/fault.ts';
import { requestUrl } from '../../kit/foreign.ts';
import { forwardedFrom } from '../../kit/forwarded.ts';
import { guardListener } from '../../kit/guard.ts';
import { type KeyId, newRequestId, type SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Span } from '../../kit/trace.ts';
import { Relay } from './relay.ts';

/**
 * The limit for messages from a client. A larger message closes the client's socket with 1009. Chromium would close its
 * pipe permanently at 110 MiB.
 */
const CLIENT_MESSAGE_BYTES_MAX = 96 * 1024 ** 2;
const REFUSAL_TIMEOUT_MS = 5_000;
/**
 * Commands that return a file as base64. The driver, with which the service controls browsers, accepts files of up to
 * 50 MiB.
 */
const FILE_METHODS: ReadonlySet<string> = new Set(['Page.captureScreenshot', 'Page.printToPDF', 'IO.read']);
const FILE_RESPONSE_BYTES_MAX = 72 * 1024 ** 2;
/**
 * The limit for other responses to the driver. The content of pages determines how long these responses are, and all
 * sessions share the driver's threads.
 */
const DRIVER_RESPONSE_BYTES_MAX = 24 * 1024 ** 2;
const DIRECT_PATH = /^\/v1\/browsers\/sessions\/([^/]+)\/debug\/?$/;
const DEVTOOLS_PATH = /^\/v1\/browsers\/live\/([0-9a-f-]{36})\/devtools\/socket$/;
const REVOKED_CLOSE = { code: 1000, reason: 'the address was revoked' };
const EXPIRED_CLOSE = { code: 1000, reason: 'the address has expired' };
const CONNECT_PATH = /^\/v1\/browsers\/sessions\/([^/]+)\/connect\/?$/;

/** All addresses at which a session accepts WebSockets. */
const SESSION_PATH = /^\/v1\/browsers\/(?:sessions|live)\/([^/]+)\//;

/** A connection that was admitted, and its session. */
interface OpenedConnection extends ConnectGrant {
  /** Set if the connection was opened with a live view address, which expires and can be revoked. */
  readonly directClient?: DirectClient;
  /**
   * Set if the client requested limits on the responses that it receives, as the driver does. Any client may request
   * them.
   */
  readonly responseBytesMax?: (method: string) => number;
  /**
   * Set if the client requested the kind `guest`, as the driver does in a session that was not created for its call. A
   * guest does not keep the session running after the clients have left.
   */
  readonly isGuest?: boolean;
}

export interface CdpParts extends Pick<Runtime, 'clock' | 'log' | 'trace'> {
  readonly connector: SessionConnector;
  /** Address ranges of trusted reverse proxies. */
  readonly trustedProxies: readonly string[];
  readonly endSession: (id: SessionId) => Promise<unknown>;
  /** Requests a hand-off for a client of the session. */
  readonly requestHandoff: (
    liveSession: LiveSession,
    keyId: KeyId | undefined,
    params: JsonObject,
  ) => Promise<JsonObject>;
  /** Returns the lease of a session that is running on this host. */
  readonly leaseOf: (id: SessionId) => Lease | undefined;
  readonly keyUses: Pick<KeyUses, 'hold'>;
  /** Resolves live view addresses with the right to control, which also admit CDP clients. */
  readonly liveView: Pick<LiveView, 'resolveClient' | 'resolveInspector' | 'recordInspection' | 'onRevoked'>;
  /**
   * Handles upgrades at addresses that are not for CDP clients. Returns undefined if no handler is responsible for the
   * address.
   */
  readonly handleOtherUpgrade: (
    request: IncomingMessage,
    connection: Duplex,
    head: Buffer,
  ) => Promise<void> | undefined;
  readonly forwarding: Forwarding;
  readonly waitingBytes: WaitingBytes;
  readonly readLongMessage: ReadLongMessage;
}

export class CdpEntry {
  readonly #parts: CdpParts;
  readonly #sockets = new WebSocketServer({
    noServer: true,
    maxPayload: CLIENT_MESSAGE_BYTES_MAX,
    perMessageDeflate: false,
    clientTracking: false,
  });

  constructor(parts: CdpParts) {
    this.#parts = parts;
  }

  /**
   * Handles the WebSocket upgrades of the server. `ownSession` is given for a server that the browser of one session
   * reaches from inside its box. It restricts connections to that session.
   */
  serve(server: Server, ownSession?: () => SessionId | undefined): void {
    const logFailure = (error: unknown): void => this.#parts.log.error('cdp.upgrade_failed', { error });
    const checkUpgrade = (request: IncomingMessage, connection: Duplex, head: Buffer): void => {
      connection.on('error', error => this.#parts.log.debug('cdp.connection_error', { reason: reason(error) }));
      const requestId = newRequestId(this.#parts.clock.now());
      const span = this.#spanOf(request, requestId);
      this.#upgrade(request, connection, head, ownSession && { id: ownSession() }, span)
        .catch(error => {
          span.end(error);
          this.#refuse(connection, error, requestId);
        })
        .catch(logFailure);
    };
    server.on('upgrade', guardListener(logFailure, checkUpgrade));
  }

  /** Begins a span that lasts from the request to the end of the connection. */
  #spanOf({ headers }: IncomingMessage, requestId: string): Span {
    const { traceparent } = headers;
    return this.#parts.trace.begin('cdp.connection', {
      kind: 'server',
      ...(typeof traceparent === 'string' ? { traceparent } : {}),
      common: { 'berth.request_id': requestId },
    });
  }

  async #upgrade(
    request: IncomingMessage,
    connection: Duplex,
    head: Buffer,
    onlySession: { readonly id: SessionId | undefined } | undefined,
    span: Span,
  ): Promise<void> {
    if (!onlySession) this.#parts.forwarding.acceptForwarded(request);
    const owner = onlySession ? undefined : await this.#ownerOf(request);
    if (owner) {
      connection.once('close', () => span.end());
      return this.#parts.forwarding.passUpgrade(owner, request, connection, head);
    }
    const otherUpgrade = onlySession ? undefined : this.#parts.handleOtherUpgrade(request, connection, head);
    if (otherUpgrade) {
      connection.once('close', () => span.end());
      return otherUpgrade;
    }
    const openedConnection = await this.#resolve(request, onlySession);
    const { live } = openedConnection;
    span.share({ 'berth.session_id': live.id, 'berth.application_id': live.applicationId });
    connection.once('close', () => span.end());
    if (connection.destroyed) return span.end();
    const kind = kindOf(openedConnection, request);
    const reservation = this.#reserve(live, kind);
    this.#sockets.handleUpgrade(request, connection, head, socket => {
      reservation.giveBack();
      socket.once('close', code => span.set({ 'berth.close_code': code }));
      void this.#attach(openedConnection, socket, connection, kind);
    });
    // If the handshake was invalid, it was answered with 400, and the callback above was not called.
    reservation.giveBack();
  }

  /** Returns the host that runs the session, if it is another host. That host checks whether the client may connect. */
  async #ownerOf(request: IncomingMessage): Promise<Parameters<Forwarding['passUpgrade']>[0] | undefined> {
    const { forwarding } = this.#parts;
    if (forwarding.isAlone || forwardedFrom(request)) return undefined;
    const id = SESSION_PATH.exec(requestUrl(request.url).pathname)?.[1];
    return id === undefined ? undefined : forwarding.otherOwner('session', id);
  }

  async #resolve(
    request: IncomingMessage,
    onlySession: { readonly id: SessionId | undefined } | undefined,
  ): Promise<OpenedConnection> {
    const { connector, liveView } = this.#parts;
    const url = requestUrl(request.url);
    const token = url.searchParams.get('token') ?? '';
    const directConnection = onlySession ? undefined : await this.#resolveDirect(url, token, liveView);
    if (directConnection)
      return { live: directConnection.live, keyId: directConnection.keyId, directClient: directConnection };
    const id = CONNECT_PATH.exec(url.pathname)?.[1]?.toLowerCase();
    if (!id || (onlySession && id !== onlySession.id))
      throw new Fault('route_not_found', 'This address does not accept WebSocket connections.', {
        advice: 'Use the connectUrl of the session.',
      });
    const openedConnection = await connector.open(id, this.#credentialsOf(request, url));
    const clientKind = url.searchParams.get('client');
    return clientKind === 'driver' || clientKind === 'guest'
      ? { ...openedConnection, responseBytesMax: responseBytesMaxForDriver, isGuest: clientKind === 'guest' }
      : openedConnection;
  }

  async #resolveDirect(
    { pathname, searchParams }: URL,
    token: string,
    liveView: CdpParts['liveView'],
  ): Promise<DirectClient | undefined> {
    const inspectedId = DEVTOOLS_PATH.exec(pathname)?.[1];
    if (inspectedId !== undefined)
      return liveView.resolveInspector(token, inspectedId, searchParams.get('page') ?? undefined);
    const sessionId = DIRECT_PATH.exec(pathname)?.[1];
    return sessionId === undefined ? undefined : liveView.resolveClient(token, sessionId.toLowerCase());
  }

  /**
   * Counts the client before the upgrade, while the response 429 can still be sent. Several clients that connect at the
   * same time therefore cannot exceed the limit.
   */
  #reserve(liveSession: LiveSession, kind: ClientKind): { giveBack(): void } {
    const reservation = { kind, isReservation: true, disconnect: () => Promise.resolve() } as const;
    try {
      liveSession.attach(reservation);
    } catch (error) {
      this.#parts.connector.recordRefusal(liveSession, error);
      throw error;
    }
    return { giveBack: () => liveSession.detach(reservation) };
  }

  async #attach(
    { live, keyId, directClient: direct, responseBytesMax }: OpenedConnection,
    socket: WebSocket,
    connection: Duplex,
    kind: ClientKind,
  ): Promise<void> {
    const { waitingBytes, readLongMessage, clock, log, endSession } = this.#parts;
    const page = direct?.page;
    const relay = new Relay({
      live,
      socket,
      connection,
      kind,
      ...(responseBytesMax ? { responseBytesMax } : {}),
      lease: this.#parts.leaseOf(live.id),
      ...(page === undefined
        ? { requestHandoff: (params: JsonObject) => this.#parts.requestHandoff(live, keyId, params) }
        : { page }),
      waitingBytes,
      readLongMessage,
      clock,
      log,
      endSession: () => endSession(live.id),
    });
    try {
      live.attach(relay);
      this.#closeOnKeyEnd({ applicationId: live.applicationId, keyId }, socket, relay);
      if (direct) this.#closeOnAddressEnd(direct, socket, relay);
      const isInside = kind === 'bystander';
      log.info('cdp.connected', {
        sessionId: live.id,
        clients: live.clients,
        inside: isInside,
        devtools: page !== undefined,
      });
      await relay.open();
    } catch (error) {
      log.warn('cdp.attach_failed', { sessionId: live.id, reason: reason(error) });
      await relay.disconnect({ code: 1011, reason: 'the browser could not be reached' });
    }
  }

  /** Closes the connection when its agent key becomes invalid. */
  #closeOnKeyEnd(key: UsedKey, socket: WebSocket, relay: Relay): void {
    const keyUse = this.#parts.keyUses.hold(key, () => void relay.disconnect(CLIENT_CLOSES.keyEnded));
    socket.once('close', () => void keyUse.close());
  }

  /** Closes the connection when its address expires or is revoked. */
  #closeOnAddressEnd({ live, page, expiresAt }: DirectClient, socket: WebSocket, relay: Relay): void {
    const { liveView, clock } = this.#parts;
    const revocation = liveView.onRevoked(live.id, () => void relay.disconnect(REVOKED_CLOSE));
    const expiry = callAt(clock, expiresAt, () => void relay.disconnect(EXPIRED_CLOSE));
    if (page !== undefined) liveView.recordInspection(live.id, page, 'opened');
    socket.once('close', () => {
      revocation.close();
      expiry.close();
      if (page !== undefined) liveView.recordInspection(live.id, page, 'closed');
    });
  }

  #credentialsOf(request: IncomingMessage, url: URL): ConnectCredentials {
    const signingKey = url.searchParams.get('signingKey') ?? undefined;
    const pass = url.searchParams.get('pass') ?? undefined;
    return { ...presentedCredentialsOf(request, this.#parts.trustedProxies), signingKey, pass };
  }

  #refuse(connection: Duplex, failure: unknown, requestId: string): void {
    const refusal = isFault(failure)
      ? failure
      : fault('internal', 'The service failed unexpectedly.', { advice: 'Report the requestId to the operator.' });
    const code: ErrorCode = isErrorCode(refusal.code) ? refusal.code : 'internal';
    if (code === 'internal') this.#parts.log.error('cdp.upgrade_failed', { requestId, reason: reason(failure) });
    const { status, retryAfterSeconds } = catalogueEntry(code);
    const body = JSON.stringify(errorBody(status, refusal, code, requestId));
    const rateHeaders = status === 429 ? limitHeaders(refusal.details ?? {}, retryAfterSeconds) : {};
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
      `X-Request-Id: ${requestId}`,
      ...(retryAfterSeconds === undefined ? [] : [`Retry-After: ${retryAfterSeconds}`]),
      ...Object.entries(rateHeaders).map(([name, value]) => `${name}: ${value}`),
      ...(status === 401 ? ['WWW-Authenticate: Bearer'] : []),
    ];
    const timeout = setTimeout(() => connection.destroy(), REFUSAL_TIMEOUT_MS);
    connection.once('close', () => clearTimeout(timeout));
    connection.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => connection.destroy());
  }
}

const responseBytesMaxForDriver = (method: string): number =>
  FILE_METHODS.has(method) ? FILE_RESPONSE_BYTES_MAX : DRIVER_RESPONSE_BYTES_MAX;

const kindOf = ({ directClient: direct, isGuest }: OpenedConnection, request: IncomingMessage): ClientKind => {
  if (direct !== undefined || isFromInside(request)) return 'bystander';
  return isGuest ? 'guest' : 'client';
};

/** Connections of the session's own extensions must not keep the session alive. */
const isFromInside = (request: IncomingMessage): boolean =>
  request.headers.origin?.startsWith('chrome-extension://') === true;
