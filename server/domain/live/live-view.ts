// People at the window of a running session: the addresses they come by, what those allow, and who drives.
import type { DebugQuery, DebugUrls } from '../../../contract/live.ts';
import type { ControlRows } from '../../engines/store/rows/controls.ts';
import type { CompleteDownload } from '../../engines/store/rows/downloads.ts';
import type { EventRows, NamedEvent } from '../../engines/store/rows/events.ts';
import type { SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import { type Clock, plus } from '../../kit/clock.ts';
import { isFault, reason } from '../../kit/fault.ts';
import { isUuid, type KeyId, type SessionId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';
import { notFound, sessionNotRunning } from '../faults.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { KeyUses, UsedKey } from '../identity/key-uses.ts';
import { sessionEnded } from '../sessions/connect.ts';
import type { LiveSession, LiveSessions } from '../sessions/live.ts';
import { hasEnded } from '../sessions/session.ts';
import type { Attendance, Watcher } from '../sessions/watchers.ts';
import { expired, invalid, type LinkClaims, type LiveLinks, type LiveRight } from './links.ts';
import { Takeover } from './takeover.ts';
import { Viewing, type WatchPage } from './viewing.ts';

const LIFE_MAX_MS = 21_600_000;

/** Somebody with an address that lets them speak CDP themselves. */
export interface Guest {
  readonly live: LiveSession;
  /** The agent key that the address was given to. */
  readonly keyId: KeyId;
  /** All that there is for them. Absent: the whole browser. */
  readonly page?: string;
  readonly expiresAt: Date;
}

export interface LiveViewParts {
  readonly rows: ControlRows;
  readonly sessions: Pick<SessionRows, 'get' | 'byId'>;
  readonly events: Pick<EventRows, 'append'>;
  readonly lives: Pick<LiveSessions, 'get'>;
  readonly links: LiveLinks;
  readonly keyUses: Pick<KeyUses, 'demand'>;
  readonly publicUrl: string;
  readonly watchPage: WatchPage;
  /** A link to it that works without a key. */
  readonly addressOf: (download: CompleteDownload) => Promise<string>;
  readonly clock: Clock;
  readonly log: Log;
}

/** A file that a page has downloaded, for whoever may have it. */
export interface Offer {
  readonly name: string;
  readonly size: number;
  readonly url: string;
  /** Where its download began; the main frame of a page has the page's name. */
  readonly frame: string;
}

export class LiveView implements Watcher {
  readonly name = 'live';
  readonly #parts: LiveViewParts;
  readonly #takeovers = new Map<SessionId, Takeover>();
  readonly #epochs = new Map<SessionId, number>();
  readonly #revoked = new Map<SessionId, Set<() => void>>();
  readonly #left = new Map<SessionId, Set<(ended: boolean) => void>>();
  readonly #offers = new Map<SessionId, Set<(offer: Offer) => void>>();
  readonly #viewings = new Map<SessionId, { readonly viewing: Viewing; viewers: number }>();

  constructor(parts: LiveViewParts) {
    this.#parts = parts;
  }

  async attend(live: LiveSession, row: SessionRow): Promise<Attendance> {
    const standing = row.status === 'PENDING' ? undefined : await this.#parts.rows.of(live.id);
    const agentInput = row.settings.takeover === 'refuse' ? 'refuse' : 'queue';
    const takeover = new Takeover(this.#parts, live, agentInput, standing);
    this.#takeovers.set(live.id, takeover);
    this.#epochs.set(live.id, standing?.linkEpoch ?? 0);
    return {
      leave: async end => {
        for (const leave of [...(this.#left.get(live.id) ?? [])]) leave(end !== undefined);
        takeover.close();
        await this.#viewings.get(live.id)?.viewing.close();
        for (const all of this.#perSession) all.delete(live.id);
      },
    };
  }

  takeoverOf(session: SessionId): Takeover | undefined {
    return this.#takeovers.get(session);
  }

  /** Addresses for people, fresh with each call. */
  async urls(caller: AgentCaller, id: string, { expiresIn, readOnly }: DebugQuery): Promise<DebugUrls> {
    const { live, row } = await this.#running(caller, id);
    const until = plus(this.#parts.clock.now(), expiresIn === undefined ? LIFE_MAX_MS : 1000 * expiresIn);
    const expiresAt = until < row.expiresAt ? until : row.expiresAt;
    const right: LiveRight = readOnly === 'true' ? 'view' : 'control';
    const claims = { session: live.id, right, expiresAt, epoch: this.#epochs.get(live.id) ?? 0, keyId: caller.keyId };
    const pages = await live.browser.listPages();
    return {
      ...this.#liveUrls(claims),
      ...(right === 'control' ? { wsUrl: this.#socketUrl(claims) } : {}),
      pages: pages.map(page => ({ ...page, ...this.#pageUrls({ ...claims, page: page.id }) })),
    };
  }

  /** Every address that was given out so far stops working at once. */
  async revoke(caller: AgentCaller, id: string): Promise<void> {
    const { live } = await this.#running(caller, id);
    const epoch = await this.#parts.rows.revokeLinks(caller.applicationId, live.id);
    if (epoch === undefined) throw notFound('Session', id);
    this.#epochs.set(live.id, epoch);
    for (const leave of [...(this.#revoked.get(live.id) ?? [])]) leave();
    this.#tell(live.id, {
      type: 'live.links_revoked',
      actor: { kind: 'agentKey', id: caller.keyId },
      detail: {},
    });
  }

  /** Who comes by an address: 403 where it does not hold (any more), 404 where the session does not run here. */
  async welcome(token: string, id: string): Promise<{ live: LiveSession; takeover: Takeover; claims: LinkClaims }> {
    const claims = this.#parts.links.read(token, id);
    const live = this.#parts.lives.get(claims.session);
    const takeover = this.#takeovers.get(claims.session);
    if (!live?.stands || !takeover) throw notFound('Session', id);
    if (claims.epoch !== this.#epochs.get(claims.session)) throw expired('was revoked');
    await this.#demandKey({ applicationId: live.applicationId, keyId: claims.keyId });
    return { live, takeover, claims };
  }

  /** Who comes with a CDP client of their own. 410 where the session has ended, as for the agent's. */
  async guest(token: string, id: string): Promise<Guest> {
    const { links, sessions } = this.#parts;
    const { session } = links.signed(token, id);
    const row = await sessions.byId(session);
    if (row && (hasEnded(row) || row.end)) throw sessionEnded(row);
    const { live, claims } = await this.welcome(token, id);
    if (claims.right !== 'control' || claims.page !== undefined) throw invalid();
    return { live, keyId: claims.keyId, expiresAt: claims.expiresAt };
  }

  /** Who comes with DevTools, to one page: that of the address, or with an address for every page the one that is named. */
  async inspector(token: string, id: string, named: string | undefined): Promise<Guest & { readonly page: string }> {
    const { live, claims } = await this.welcome(token, id);
    const page = claims.page ?? named;
    if (claims.right !== 'control' || page === undefined || (named ?? page) !== page) throw invalid();
    return { live, keyId: claims.keyId, page, expiresAt: claims.expiresAt };
  }

  /** DevTools came to a page, or left it. */
  inspected(session: SessionId, page: string, what: 'opened' | 'closed'): void {
    this.#tell(session, { type: `devtools.${what}`, actor: { kind: 'viewer' }, detail: { page } });
  }

  /** Whoever is to send a file in must hold an address for driving, while somebody drives. */
  async sender(token: string, id: string): Promise<LiveSession> {
    const { live, takeover, claims } = await this.welcome(token, id);
    if (claims.right !== 'control' || !takeover.control) throw invalid();
    return live;
  }

  /** Calls `leave` when the addresses of the session are revoked. */
  onRevoked(session: SessionId, leave: () => void): { close(): void } {
    return listen(this.#revoked, session, leave);
  }

  /** Calls `offer` with each file that a page of the session has downloaded. */
  onOffer(session: SessionId, offer: (offer: Offer) => void): { close(): void } {
    return listen(this.#offers, session, offer);
  }

  /** A download is complete. Where nobody looks, no link is made. */
  async offer(download: CompleteDownload, frame: string): Promise<void> {
    const { addressOf, log } = this.#parts;
    if (!this.#offers.get(download.sessionId)?.size) return;
    try {
      const offer = { name: download.filename, size: download.size, url: await addressOf(download), frame };
      for (const tell of [...(this.#offers.get(download.sessionId) ?? [])]) tell(offer);
    } catch (error) {
      log.warn('live.download_not_offered', { sessionId: download.sessionId, reason: reason(error) });
    }
  }

  /** Calls `leave` when the session ends, or goes to a successor. */
  onLeave(session: SessionId, leave: (ended: boolean) => void): { close(): void } {
    return listen(this.#left, session, leave);
  }

  /** All viewers of a session share one look at it. */
  look(live: LiveSession): { viewing: Viewing; close(): Promise<void> } {
    const { watchPage, clock } = this.#parts;
    const shared = this.#viewings.get(live.id) ?? { viewing: new Viewing(live, watchPage, clock), viewers: 0 };
    this.#viewings.set(live.id, shared);
    shared.viewers++;
    return {
      viewing: shared.viewing,
      close: async () => {
        if (--shared.viewers > 0 || this.#viewings.get(live.id) !== shared) return;
        this.#viewings.delete(live.id);
        await shared.viewing.close();
      },
    };
  }

  async #demandKey(key: UsedKey): Promise<void> {
    await this.#parts.keyUses.demand(key).catch(error => {
      throw isFault(error, 'invalid_credentials') ? expired('was given to an agent key that has ended') : error;
    });
  }

  async #running(caller: AgentCaller, id: string): Promise<{ live: LiveSession; row: SessionRow }> {
    const row = isUuid(id) ? await this.#parts.sessions.get(caller.applicationId, id as SessionId) : undefined;
    if (!row) throw notFound('Session', id);
    const live = this.#parts.lives.get(row.id);
    if (row.status !== 'RUNNING' || !live?.stands) throw sessionNotRunning(id, row.status);
    return { live, row };
  }

  get #perSession(): ReadonlyArray<Map<SessionId, unknown>> {
    return [this.#takeovers, this.#epochs, this.#revoked, this.#left, this.#offers, this.#viewings];
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

  #tell(session: SessionId, event: Omit<NamedEvent, 'at'>): void {
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

function listen<Key, Listener>(all: Map<Key, Set<Listener>>, key: Key, listener: Listener): { close(): void } {
  const listeners = all.get(key) ?? new Set();
  all.set(key, listeners.add(listener));
  return { close: () => void listeners.delete(listener) };
}
