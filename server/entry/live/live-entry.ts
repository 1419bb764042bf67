// Accepts viewers: WebSocket upgrades at live view addresses, which are checked before they are accepted.
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { ServerMessage } from '../../../contract/live-messages.ts';
import { fault } from '../../domain/faults.ts';
import type { KeyUses } from '../../domain/identity/key-uses.ts';
import type { WaitingBytes } from '../../domain/limits/waiting-bytes.ts';
import type { LiveView } from '../../domain/live/live-view.ts';
import type { LiveSession } from '../../domain/sessions/live.ts';
import { callAt } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import { requestUrl } from '../../kit/foreign.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { Viewer } from './viewer.ts';

/** The maximum size of a message. The largest messages contain pasted text. */
const MESSAGE_BYTES_MAX = 4 * 1024 ** 2;
/** The maximum number of viewers per session. */
const VIEWERS_MAX = 100;
const SOCKET_PATH = /^\/v1\/browsers\/live\/([0-9a-f-]{36})\/socket$/;
const SESSION_ENDED = 'the session has ended';
const HOLDER_ID = /^[0-9a-f-]{36}$/;

export interface LiveEntryParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly liveView: LiveView;
  readonly keyUses: Pick<KeyUses, 'hold'>;
  readonly waitingBytes: WaitingBytes;
}

type ResolvedAddress = Awaited<ReturnType<LiveView['resolve']>>;

export class LiveEntry {
  readonly #parts: LiveEntryParts;
  readonly #viewerCounts = new Map<LiveSession, number>();
  readonly #sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MESSAGE_BYTES_MAX,
    perMessageDeflate: false,
    clientTracking: false,
  });

  constructor(parts: LiveEntryParts) {
    this.#parts = parts;
  }

  /** Undefined if the address does not belong to the live view. Throws the fault that is sent as the response. */
  upgrade(request: IncomingMessage, connection: Duplex, head: Buffer): Promise<void> | undefined {
    const url = requestUrl(request.url);
    const id = SOCKET_PATH.exec(url.pathname)?.[1];
    return id === undefined ? undefined : this.#accept(id, url, request, connection, head);
  }

  async #accept(id: string, url: URL, request: IncomingMessage, connection: Duplex, head: Buffer): Promise<void> {
    const { liveView } = this.#parts;
    const token = url.searchParams.get('token') ?? '';
    const resolvedAddress = await liveView.resolve(token, id).catch(async error => {
      if (await liveView.isOver(token, id)) return undefined;
      throw error;
    });
    if (!resolvedAddress) return this.#sendSessionEnded(request, connection, head);
    const { claims, ...session } = resolvedAddress;
    if ((this.#viewerCounts.get(session.live) ?? 0) >= VIEWERS_MAX)
      throw fault('client_limit', `Session ${id} already has ${VIEWERS_MAX} viewers, which is the limit.`, {
        advice: 'Close one of the live views.',
        details: { limit: VIEWERS_MAX, used: VIEWERS_MAX },
      });
    const allowedClaims = url.searchParams.get('readOnly') === 'true' ? { ...claims, right: 'view' as const } : claims;
    const page = claims.page ?? url.searchParams.get('page') ?? undefined;
    const holder = url.searchParams.get('holder') ?? '';
    this.#sockets.handleUpgrade(request, connection, head, socket => {
      const viewerClaims = { ...allowedClaims, ...(page === undefined ? {} : { page }) };
      const isOffered = (frame: string): boolean => claims.page === undefined || claims.page === frame;
      void this.#attach(
        socket,
        connection,
        session,
        viewerClaims,
        isOffered,
        HOLDER_ID.test(holder) ? holder : undefined,
      ).catch(error => {
        this.#parts.log.warn('live.failed', { sessionId: id, reason: reason(error) });
        socket.close(1011, 'the browser could not be reached');
      });
    });
  }

  /**
   * Accepts the upgrade only to report that the session has ended. The page cannot see the status of a refused upgrade,
   * and would try again forever.
   */
  #sendSessionEnded(request: IncomingMessage, connection: Duplex, head: Buffer): void {
    this.#sockets.handleUpgrade(request, connection, head, socket => {
      socket.on('error', error => this.#parts.log.debug('live.socket_error', { reason: reason(error) }));
      socket.send(JSON.stringify({ type: 'ended', why: SESSION_ENDED } satisfies ServerMessage));
      socket.close(1000, SESSION_ENDED);
    });
  }

  async #attach(
    socket: WebSocket,
    connection: Duplex,
    { live, lease }: Omit<ResolvedAddress, 'claims'>,
    claims: ResolvedAddress['claims'],
    isOffered: (frame: string) => boolean,
    holder: string | undefined,
  ): Promise<void> {
    const { clock, log } = this.#parts;
    this.#viewerCounts.set(live, (this.#viewerCounts.get(live) ?? 0) + 1);
    const sharedView = this.#parts.liveView.view(live);
    const expiry = callAt(clock, claims.expiresAt, () => viewer.end('the address has expired'));
    const owner = { application: live.applicationId, session: live.id };
    const unreadBytesWatch = this.#parts.waitingBytes.watch(owner, {
      bytes: () => connection.writableLength,
      close: () => viewer.closeAsTooSlow(),
    });
    const viewer = new Viewer({
      socket,
      claims,
      holder,
      viewing: sharedView.viewing,
      lease,
      bytesWatch: unreadBytesWatch,
      clock,
      log,
    });
    connection.on('drain', () => unreadBytesWatch.note());
    const { keyId } = claims;
    const subscriptions = [
      ...(keyId
        ? [
            this.#parts.keyUses.hold({ applicationId: live.applicationId, keyId }, () =>
              viewer.end('the agent key of this address has expired or was revoked'),
            ),
          ]
        : []),
      ...(claims.lease ? [lease.attachView()] : []),
      this.#parts.liveView.onRevoked(live.id, () => viewer.end('the address was revoked')),
      this.#parts.liveView.onOffer(live.id, offer => {
        if (claims.right === 'control' && isOffered(offer.frame)) viewer.offer(offer);
      }),
      this.#parts.liveView.onLeave(live.id, hasSessionEnded =>
        hasSessionEnded ? viewer.end(SESSION_ENDED) : viewer.closeForRestart(),
      ),
    ];
    try {
      log.info('live.came', { sessionId: live.id, right: claims.right });
      await sharedView.viewing.open();
      viewer.begin();
      await viewer.whenGone;
    } finally {
      expiry.close();
      unreadBytesWatch.close();
      for (const subscription of subscriptions) void subscription.close();
      await sharedView.close();
      const remainingViewers = (this.#viewerCounts.get(live) ?? 1) - 1;
      if (remainingViewers > 0) this.#viewerCounts.set(live, remainingViewers);
      else this.#viewerCounts.delete(live);
      log.info('live.left', { sessionId: live.id });
    }
  }
}
