// The live view of running sessions: its addresses, the rights of each address, and who has control.
import type { DebugQuery, DebugUrls } from '../../../contract/live.ts';
import type { ControlRows } from '../../engines/store/rows/controls.ts';
import type { CompleteDownload } from '../../engines/store/rows/downloads.ts';
import type { EventRows, NamedEvent } from '../../engines/store/rows/events.ts';
import type { HandoffRow, HandoffRows } from '../../engines/store/rows/handoffs.ts';
import type { SessionEnd, SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import { addMs } from '../../kit/clock.ts';
import { isFault, reason } from '../../kit/fault.ts';
import type { KeyId, SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { fault, notFound, sessionNotRunning } from '../faults.ts';
import { Lease } from '../handoffs/lease.ts';
import type { LeaseParts } from '../handoffs/lease-parts.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { KeyUses, UsedKey } from '../identity/key-uses.ts';
import type { Attendance } from '../sessions/attendance.ts';
import { isExclusive } from '../sessions/exclusive.ts';
import type { LiveSession, LiveSessions } from '../sessions/live.ts';
import { hasEnded, requireSession } from '../sessions/session.ts';
import { sessionEnded } from '../sessions/session-connector.ts';
import type { Watcher } from '../sessions/watchers.ts';
import { type LinkClaims, type LiveLinks, type LiveRight, linkExpired, linkInsufficient } from './links.ts';
import { Viewing, type WatchPage } from './viewing.ts';

const ADDRESS_LIFE_MAX_MS = 21_600_000;

/** A CDP client that connects with a live view address. */
export interface DirectClient {
  readonly live: LiveSession;
  /** The agent key that the address was issued to. */
  readonly keyId: KeyId;
  /** Target id of the only page that the client may access. If absent, it may access the whole browser. */
  readonly page?: string;
  readonly expiresAt: Date;
}

export interface LiveViewParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly rows: ControlRows;
  readonly handoffs: Pick<HandoffRows, 'findOpen'>;
  readonly leases: LeaseParts;
  readonly sessions: Pick<SessionRows, 'get' | 'byId'>;
  readonly events: Pick<EventRows, 'append'>;
  readonly liveSessions: Pick<LiveSessions, 'get'>;
  readonly links: LiveLinks;
  readonly keyUses: Pick<KeyUses, 'assertActive'>;
  readonly publicUrl: string;
  readonly watchPage: WatchPage;
  /** Makes the session's pictures in the live view black, or shows them again. */
  readonly coverFrames: (session: SessionId, isCovered: boolean) => Promise<void>;
  /** Makes a signed link to a download. */
  readonly linkTo: (download: CompleteDownload) => Promise<string>;
}

/** A completed download that is offered to viewers. */
export interface DownloadOffer {
  readonly name: string;
  readonly size: number;
  readonly url: string;
  /** Id of the frame that started the download; the id of a page's main frame is the page's id. */
  readonly frame: string;
}

export class LiveView implements Watcher {
  readonly name = 'live';
  /**
   * The other watchers attend after this one, because an adopted session may be in a masked hand-off, and this watcher
   * determines what the others must hide.
   */
  readonly mustAttendFirst = true;
  readonly #parts: LiveViewParts;
  readonly #leases = new Map<SessionId, Lease>();
  readonly #epochs = new Map<SessionId, number>();
  readonly #revokeListeners = new Map<SessionId, Set<() => void>>();
  readonly #leaveListeners = new Map<SessionId, Set<(hasSessionEnded: boolean) => void>>();
  readonly #offerListeners = new Map<SessionId, Set<(offer: DownloadOffer) => void>>();
  readonly #viewings = new Map<SessionId, { readonly viewing: Viewing; viewerCount: number }>();

  constructor(parts: LiveViewParts) {
    this.#parts = parts;
  }

  async attend(liveSession: LiveSession, row: SessionRow): Promise<Attendance> {
    const storedControl = row.status === 'PENDING' ? undefined : await this.#parts.rows.ofSession(liveSession.id);
    const agentInput = row.settings.takeover === 'refuse' ? 'refuse' : 'queue';
    const lease = new Lease(this.#parts.leases, liveSession, agentInput, row.keyId);
    this.#leases.set(liveSession.id, lease);
    const coverSubscription = liveSession.onCover(cover => {
      this.#parts
        .coverFrames(liveSession.id, cover !== undefined)
        .catch(error =>
          this.#parts.log.warn('live.cover_failed', { sessionId: liveSession.id, reason: reason(error) }),
        );
    });
    const leave = async (end?: SessionEnd): Promise<void> => {
      for (const listener of [...(this.#leaveListeners.get(liveSession.id) ?? [])]) listener(end !== undefined);
      coverSubscription.close();
      await lease.close(end !== undefined);
      await this.#viewings.get(liveSession.id)?.viewing.close();
      for (const mapBySession of this.#mapsBySession) mapBySession.delete(liveSession.id);
    };
    try {
      if (row.status !== 'PENDING') await lease.adopt(await this.#parts.handoffs.findOpen(liveSession.id));
    } catch (error) {
      await leave(); // No attendance is returned, so nothing would call `leave` later.
      throw error;
    }
    this.#epochs.set(liveSession.id, storedControl?.linkEpoch ?? 0);
    return { leave };
  }

  leaseOf(session: SessionId): Lease | undefined {
    return this.#leases.get(session);
  }

  /** Issues new addresses for viewers. */
  async urls(caller: AgentCaller, id: string, { expiresIn, readOnly }: DebugQuery): Promise<DebugUrls> {
    const { live, row } = await this.#requireRunning(caller, id);
    // The session may be extended, so its time limit does not limit the addresses. They become invalid when the session
    // ends.
    const expiresAt = addMs(this.#parts.clock.now(), expiresIn === undefined ? ADDRESS_LIFE_MAX_MS : 1000 * expiresIn);
    const right: LiveRight = readOnly === 'true' || isExclusive(row) ? 'view' : 'control';
    const claims = { session: live.id, right, expiresAt, epoch: this.#epochs.get(live.id) ?? 0, keyId: caller.keyId };
    const listedPages = live.secrets.cleanAll(await live.browser.listPages());
    const pages = live.cover ? listedPages.map(page => ({ ...page, title: '' })) : listedPages;
    return {
      ...this.#liveUrls(claims),
      ...(right === 'control' ? { wsUrl: this.#socketUrl(claims) } : {}),
      pages: pages.map(page => ({ ...page, ...this.#pageUrls({ ...claims, page: page.id }) })),
    };
  }

  /** Returns the live view address for the person who has control in this hand-off. */
  leasedUrl(row: HandoffRow, until: Date): string {
    const epoch = this.#epochs.get(row.sessionId) ?? 0;
    const lease = { handoffId: row.id, fence: row.fence };
    const token = this.#parts.links.tokenOf({
      session: row.sessionId,
      right: 'control',
      expiresAt: until,
      epoch,
      lease,
    });
    const page = row.pageId === undefined ? '' : `&page=${encodeURIComponent(row.pageId)}`;
    return `${this.#parts.publicUrl}/v1/browsers/live/${row.sessionId}?token=${token}${page}`;
  }

  /** Revokes every address issued so far. */
  async revoke(caller: AgentCaller, id: string): Promise<void> {
    const { live } = await this.#requireRunning(caller, id);
    const epoch = await this.#parts.rows.revokeLinks(caller.applicationId, live.id);
    if (epoch === undefined) throw notFound('Session', id);
    this.#epochs.set(live.id, epoch);
    for (const leave of [...(this.#revokeListeners.get(live.id) ?? [])]) leave();
    this.#recordEvent(live.id, {
      type: 'live.links_revoked',
      actor: { kind: 'agentKey', id: caller.keyId },
      detail: {},
    });
  }

  /** Resolves an address. Throws 403 if it is not valid, and 404 if the session is not running on this host. */
  async resolve(token: string, id: string): Promise<{ live: LiveSession; lease: Lease; claims: LinkClaims }> {
    const claims = this.#parts.links.read(token, id);
    const liveSession = this.#parts.liveSessions.get(claims.session);
    const lease = this.#leases.get(claims.session);
    if (!liveSession?.isOpen || !lease) throw notFound('Session', id);
    const { keyId } = claims;
    if (keyId) await this.#assertKeyActive({ applicationId: liveSession.applicationId, keyId });
    // Checked after the `await`, because the addresses may be revoked while it is pending.
    if (claims.epoch !== this.#epochs.get(claims.session)) throw linkExpired('was revoked');
    if (claims.lease && !isCurrent(lease, claims.lease)) throw linkExpired('belongs to a hand-off that has ended');
    return { live: liveSession, lease, claims };
  }

  /** Whether the address was issued for a session that has ended since then. */
  async isOver(token: string, id: string): Promise<boolean> {
    return (await this.#endedSession(token, id)) !== undefined;
  }

  /** Returns the session of an address if the session has ended. The address may have expired. */
  async #endedSession(token: string, id: string): Promise<SessionRow | undefined> {
    const { session } = this.#parts.links.readSigned(token, id);
    const row = await this.#parts.sessions.byId(session);
    return row && (hasEnded(row) || row.end) ? row : undefined;
  }

  /** Resolves an address for a CDP client. Throws 410 if the session has ended, as the connect endpoint does. */
  async resolveClient(token: string, id: string): Promise<DirectClient> {
    const endedRow = await this.#endedSession(token, id);
    if (endedRow) throw sessionEnded(endedRow);
    const { live, claims } = await this.resolve(token, id);
    const { keyId } = claims;
    if (claims.right !== 'control' || claims.page !== undefined || !keyId) throw linkInsufficient();
    return { live, keyId, expiresAt: claims.expiresAt };
  }

  /**
   * Resolves an address for DevTools. The page is the one that the address names, or `requestedPage` if the address is
   * valid for every page.
   */
  async resolveInspector(
    token: string,
    id: string,
    requestedPage: string | undefined,
  ): Promise<DirectClient & { readonly page: string }> {
    const { live, claims } = await this.resolve(token, id);
    const page = claims.page ?? requestedPage;
    const { keyId } = claims;
    if (claims.right !== 'control' || page === undefined || (requestedPage ?? page) !== page || !keyId)
      throw linkInsufficient();
    return { live, keyId, page, expiresAt: claims.expiresAt };
  }

  /** Records that DevTools was opened or closed for a page. */
  recordInspection(session: SessionId, page: string, change: 'opened' | 'closed'): void {
    this.#recordEvent(session, { type: `devtools.${change}`, actor: { kind: 'viewer' }, detail: { page } });
  }

  /** Resolves an address for an upload. The address must grant the right to control, and a viewer must have control. */
  async resolveUploader(token: string, id: string): Promise<LiveSession> {
    const { live, lease, claims } = await this.resolve(token, id);
    if (claims.right !== 'control') throw linkInsufficient();
    if (!lease.control)
      throw fault('signed_url_invalid', 'A file can be uploaded only while a viewer has control of the session.', {
        advice: 'Take control, then upload the file again.',
      });
    return live;
  }

  /** Calls `onRevoke` when the addresses of the session are revoked. */
  onRevoked(session: SessionId, onRevoke: () => void): { close(): void } {
    return addListener(this.#revokeListeners, session, onRevoke);
  }

  /** Calls `offer` whenever a download of the session completes. */
  onOffer(session: SessionId, offer: (offer: DownloadOffer) => void): { close(): void } {
    return addListener(this.#offerListeners, session, offer);
  }

  /** Offers a completed download to viewers. If there are no viewers, no link is made. */
  async offer(download: CompleteDownload, frame: string): Promise<void> {
    const { linkTo, log } = this.#parts;
    if (!this.#offerListeners.get(download.sessionId)?.size) return;
    try {
      const offer = { name: download.filename, size: download.size, url: await linkTo(download), frame };
      for (const listener of [...(this.#offerListeners.get(download.sessionId) ?? [])]) listener(offer);
    } catch (error) {
      log.warn('live.download_not_offered', { sessionId: download.sessionId, reason: reason(error) });
    }
  }

  /**
   * Calls `listener` when the session ends, or when this process leaves the running session to the next process.
   */
  onLeave(session: SessionId, listener: (hasSessionEnded: boolean) => void): { close(): void } {
    return addListener(this.#leaveListeners, session, listener);
  }

  /** Returns the `Viewing` of the session, which all its viewers share. */
  view(liveSession: LiveSession): { viewing: Viewing; close(): Promise<void> } {
    const { watchPage, clock } = this.#parts;
    const sharedViewing = this.#viewings.get(liveSession.id) ?? {
      viewing: new Viewing(liveSession, watchPage, clock),
      viewerCount: 0,
    };
    this.#viewings.set(liveSession.id, sharedViewing);
    sharedViewing.viewerCount++;
    return {
      viewing: sharedViewing.viewing,
      close: async () => {
        if (--sharedViewing.viewerCount > 0 || this.#viewings.get(liveSession.id) !== sharedViewing) return;
        this.#viewings.delete(liveSession.id);
        await sharedViewing.viewing.close();
      },
    };
  }

  async #assertKeyActive(key: UsedKey): Promise<void> {
    await this.#parts.keyUses.assertActive(key).catch(error => {
      throw isFault(error, 'invalid_credentials')
        ? linkExpired('was issued to an agent key that has expired or was revoked')
        : error;
    });
  }

  async #requireRunning(caller: AgentCaller, id: string): Promise<{ live: LiveSession; row: SessionRow }> {
    const row = await requireSession(this.#parts.sessions, caller.applicationId, id);
    const liveSession = this.#parts.liveSessions.get(row.id);
    if (row.status !== 'RUNNING' || !liveSession?.isOpen) throw sessionNotRunning(id, row.status);
    return { live: liveSession, row };
  }

  get #mapsBySession(): ReadonlyArray<Map<SessionId, unknown>> {
    return [
      this.#leases,
      this.#epochs,
      this.#revokeListeners,
      this.#leaveListeners,
      this.#offerListeners,
      this.#viewings,
    ];
  }

  #liveUrls(claims: LinkClaims): { debuggerUrl: string; debuggerFullscreenUrl: string } {
    const page = claims.page === undefined ? '' : `&page=${encodeURIComponent(claims.page)}`;
    const token = this.#parts.links.tokenOf(claims);
    const debuggerUrl = `${this.#parts.publicUrl}/v1/browsers/live/${claims.session}?token=${token}${page}`;
    return { debuggerUrl, debuggerFullscreenUrl: `${debuggerUrl}&navbar=false` };
  }

  #pageUrls(claims: LinkClaims & { readonly page: string }) {
    const path = `/v1/browsers/live/${claims.session}/devtools`;
    const query = `token=${this.#parts.links.tokenOf(claims)}&page=${encodeURIComponent(claims.page)}`;
    const devtoolsUrl = `${this.#parts.publicUrl}${path}?${query}`;
    return { ...this.#liveUrls(claims), ...(claims.right === 'control' ? { devtoolsUrl } : {}) };
  }

  #recordEvent(session: SessionId, event: Omit<NamedEvent, 'at'>): void {
    const { events, clock, log } = this.#parts;
    events
      .append(session, { ...event, at: clock.now() })
      .catch(error => log.warn('session.event_not_written', { sessionId: session, reason: reason(error) }));
  }

  #socketUrl(claims: LinkClaims): string {
    const origin = this.#parts.publicUrl.replace(/^http/, 'ws');
    return `${origin}/v1/browsers/sessions/${claims.session}/debug?token=${this.#parts.links.tokenOf(claims)}`;
  }
}

const isCurrent = ({ control }: Lease, { handoffId, fence }: NonNullable<LinkClaims['lease']>): boolean =>
  control?.handoffId === handoffId && control.fence === fence;

function addListener<Key, Listener>(
  listenersByKey: Map<Key, Set<Listener>>,
  key: Key,
  listener: Listener,
): { close(): void } {
  const listeners = listenersByKey.get(key) ?? new Set();
  listenersByKey.set(key, listeners.add(listener));
  return { close: () => void listeners.delete(listener) };
}
