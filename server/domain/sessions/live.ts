// A session that is running in this process, with its browser, box and clients, and the list of all such sessions.
import type { Box } from '../../engines/slots/slots.ts';
import type { SessionEnd, SessionRow } from '../../engines/store/rows/sessions.ts';
import { reason } from '../../kit/fault.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Log } from '../../kit/log.ts';
import type { Scope } from '../../kit/scope.ts';
import { SecretTexts } from '../../kit/secret-texts.ts';
import type { Tracer } from '../../kit/trace.ts';
import { withTimeout } from '../../kit/wait.ts';
import { fault } from '../faults.ts';
import { type Attendance, BEFORE_SHUT_DOWN_TIMEOUT_MS, type Remains, SHUT_DOWN_TIMEOUT_MS } from './attendance.ts';
import type { BootedBrowser } from './boot.ts';
import type { Browser, CommandTap, SessionEgress } from './browser-host.ts';
import type { Presence } from './presence.ts';
import { ResponseTypes } from './response-types.ts';

const LEAVE_TIMEOUT_MS = 5_000;
/** A browser that does not respond within this time when its session ends hangs. */
const PROBE_TIMEOUT_MS = 5_000;
/** The maximum number of clients of one session at a time. Bystanders are counted separately, with the same limit. */
export const CLIENTS_MAX = 20;

/** Why a client's socket is closed: the WebSocket close code and a description. */
export interface ClientClose {
  readonly code: number;
  readonly reason: string;
}

export const CLIENT_CLOSES = {
  released: { code: 1000, reason: 'the session was released' },
  clientClosed: {
    code: 1000,
    reason: 'the client closed its browser; the session continues and accepts new connections',
  },
  restart: { code: 1001, reason: 'the service is restarting; connect again to the same address' },
  timedOut: { code: 4001, reason: 'the session reached its time limit' },
  keyEnded: { code: 4001, reason: 'the agent key was revoked or has expired' },
  failed: { code: 4002, reason: 'the browser ended unexpectedly' },
  idle: { code: 4003, reason: 'no command was received for 600 seconds' },
} as const satisfies Record<string, ClientClose>;

function clientCloseOf(end: SessionEnd): ClientClose {
  if (end.status === 'COMPLETED') return { ...CLIENT_CLOSES.released, reason: `session ended: ${end.reason}` };
  if (end.status === 'TIMED_OUT') return { ...CLIENT_CLOSES.timedOut, reason: `session ended: ${end.reason}` };
  return { ...CLIENT_CLOSES.failed, reason: `session ended: ${end.reason}` };
}

/** How a session is hidden while a person has control: its pages are masked, or nothing is recorded at all. */
export type Cover = 'mask' | 'pause';

interface NamedAttendance {
  readonly name: string;
  readonly attendance: Attendance;
}

type AttendanceCallback = (one: Attendance) => Promise<void> | void | undefined;

/**
 * How a CDP socket affects the lifetime of the session. A `client` keeps the session alive. A `guest` does so only
 * until the session has had a client. The service uses guests to run calls in sessions that were not created for the
 * call. A `bystander` never keeps the session alive. Bystanders are the session's own extensions, and sockets of live
 * view addresses.
 */
export type ClientKind = 'client' | 'guest' | 'bystander';

export interface AttachedClient {
  readonly kind: ClientKind;
  /** Set if this entry only reserves the place of a client that has not connected yet. */
  readonly isReservation?: true;
  /** Closes the client's socket and channel. */
  disconnect(close: ClientClose): Promise<void>;
}

export class LiveSession {
  readonly id: SessionId;
  readonly applicationId: ApplicationId;
  readonly keepAlive: boolean;
  readonly browser: Browser;
  readonly box: Box;
  readonly presence: Presence;
  readonly egress: SessionEgress;
  /** Receives the commands of clients; set before the first client connects. */
  tap: CommandTap | undefined;
  /**
   * Redacts text that clients typed. Set by the log watcher, before the first client connects. Undefined if the session
   * has no log: what clients type is then not known.
   */
  redactTyped: ((text: string) => string) | undefined;
  /**
   * Remembers what a viewer types into a target of the browser, as a CDP command, so that it is redacted too. Set
   * together with `redactTyped`.
   */
  rememberTyped: ((method: string, target: string, params: JsonObject) => void) | undefined;
  /** Secrets that the service typed into pages of the session. They are never shown. */
  readonly secrets = new SecretTexts();
  /** Content types of documents. Filled by the log watcher, so it is empty if the session has no log. */
  readonly responseTypes = new ResponseTypes();
  #cover: Cover | undefined;
  readonly #coverListeners = new Set<(cover: Cover | undefined) => void>();
  #holds = 0;
  #heldUntilMs = Number.NEGATIVE_INFINITY;
  readonly #log: Log;
  readonly #scope: Scope;
  readonly #trace: Tracer;
  readonly #attendances: NamedAttendance[] = [];
  readonly #clients = new Set<AttachedClient>();
  #expiresAt: Date;
  #isClosing = false;
  #isBrowserDead = false;

  constructor(row: SessionRow, parts: BootedBrowser, presence: Presence, log: Log, trace: Tracer) {
    this.id = row.id;
    this.applicationId = row.applicationId;
    this.keepAlive = row.keepAlive;
    this.#expiresAt = row.expiresAt;
    this.browser = parts.browser;
    this.browser.setSessionId(row.id);
    this.box = parts.box;
    this.egress = parts.egress;
    this.presence = presence;
    this.#log = log.with({ sessionId: row.id });
    this.#trace = trace;
    this.#scope = parts.scope;
    void Promise.race([this.box.whenGone, this.browser.failed]).then(() => this.#onBrowserGone());
  }

  get clients(): number {
    return this.#clients.size;
  }

  /** The earliest time at which the session ends unless something changes. */
  get dueAt(): Date {
    const { deadline } = this.presence;
    return deadline && deadline < this.#expiresAt ? deadline : this.#expiresAt;
  }

  setExpiry(expiresAt: Date): void {
    this.#expiresAt = expiresAt;
  }

  /** False once the session is being closed: the end of its browser is then expected. */
  get isOpen(): boolean {
    return !this.#isClosing;
  }

  /** Undefined if nothing is hidden. */
  get cover(): Cover | undefined {
    return this.#cover;
  }

  setCover(cover: Cover | undefined): void {
    if (cover === this.#cover) return;
    this.#cover = cover;
    for (const listener of [...this.#coverListeners]) listener(cover);
  }

  /** Calls the listener at once, and whenever the cover changes. */
  onCover(listener: (cover: Cover | undefined) => void): { close(): void } {
    this.#coverListeners.add(listener);
    listener(this.#cover);
    return { close: () => void this.#coverListeners.delete(listener) };
  }

  /** Keeps a session without clients from ending until the hold is closed, and for the grace period after that. */
  hold(): { close(): void } {
    this.#holds++;
    let isHeld = true;
    return {
      close: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#holds--;
        this.#heldUntilMs = this.presence.startGrace();
      },
    };
  }

  isHeldAt(now: Date): boolean {
    return this.#holds > 0 || now.getTime() < this.#heldUntilMs;
  }

  attach(client: AttachedClient): void {
    if (this.#isClosing)
      throw fault('session_ended', `Session ${this.id} is ending.`, { advice: 'Create another session.' });
    const isBystander = client.kind === 'bystander';
    const used = [...this.#clients].filter(({ kind }) => (kind === 'bystander') === isBystander).length;
    if (used >= CLIENTS_MAX) {
      const limitedKind = isBystander ? 'connections from live view addresses and extensions' : 'clients';
      throw fault('client_limit', `Session ${this.id} already has ${CLIENTS_MAX} ${limitedKind}, which is the limit.`, {
        advice: 'Close one of them, or create another session.',
        details: { limit: CLIENTS_MAX, used },
      });
    }
    this.#clients.add(client);
    if (client.kind !== 'bystander' && !client.isReservation) this.presence.noteConnected(client.kind);
  }

  /** `why` describes the reason if the client did not disconnect by itself. */
  detach(client: AttachedClient, why?: string): void {
    if (!this.#clients.delete(client)) return;
    if (client.kind !== 'bystander' && !client.isReservation && !this.#isClosing)
      this.presence.noteDisconnected(client.kind, why);
  }

  addAttendance(name: string, attendance: Attendance): void {
    this.#attendances.push({ name, attendance });
  }

  /** Ends the browser and its box. `salvage` runs before the session folder is removed. */
  async close(end: SessionEnd, salvage: (remains: Remains) => Promise<void>): Promise<void> {
    const trace = this.#trace;
    void this.#closeBrowserIfHanging();
    await trace.runInSpan('session.close_clients', () => this.#closeClients(clientCloseOf(end)));
    // A dead browser does not respond, so pending calls are rejected at once.
    if (this.#isBrowserDead) await this.browser.close();
    else
      await trace.runInSpan('session.last_words', () =>
        this.#callWatchers('last_words', BEFORE_SHUT_DOWN_TIMEOUT_MS, attendance => attendance.beforeShutDown?.(end)),
      );
    const attendancesWithShutDown = this.#attendances.filter(({ attendance }) => attendance.shutDown);
    await trace.runInSpan('session.leave', () => this.endAttendances(end));
    if (!this.#isBrowserDead)
      await trace.runInSpan('session.shut_down', () =>
        this.#runAll(attendancesWithShutDown, 'shut_down', SHUT_DOWN_TIMEOUT_MS, attendance =>
          attendance.shutDown?.(end),
        ),
      );
    try {
      await this.browser.close();
      await this.egress.close();
      const remains = await trace.runInSpan('box.end', () => this.box.end());
      await trace.runInSpan('session.salvage', () => salvage(remains));
    } finally {
      await trace.runInSpan('box.remove', () => this.#scope.close());
    }
  }

  async endAttendances(end?: SessionEnd): Promise<void> {
    await this.#callWatchers('leave', LEAVE_TIMEOUT_MS, attendance => attendance.leave?.(end));
    this.#attendances.length = 0;
  }

  /** Disconnects the clients without ending the browser, which the next process adopts. */
  async abandon(): Promise<void> {
    await this.#closeClients(CLIENT_CLOSES.restart);
    await this.endAttendances();
    await this.browser.close();
    await this.egress.close();
    await this.box.abandon();
  }

  /** A browser that does not respond is not waited for any longer. */
  async #closeBrowserIfHanging(): Promise<void> {
    if (!(await this.browser.hangs(PROBE_TIMEOUT_MS))) return;
    this.#log.warn('session.browser_hangs', { waitedMs: PROBE_TIMEOUT_MS });
    this.#onBrowserGone();
  }

  /**
   * If the session is being closed, watchers may be waiting for the browser. Their commands are rejected when the
   * connection is closed.
   */
  #onBrowserGone(): void {
    this.#isBrowserDead = true;
    if (this.#isClosing)
      void this.browser.close().catch(error => this.#log.warn('browser.close_failed', { reason: reason(error) }));
  }

  async #closeClients(close: ClientClose): Promise<void> {
    this.#isClosing = true;
    await Promise.all([...this.#clients].map(client => client.disconnect(close)));
    await this.presence.whenWritten();
  }

  /** Calls all watchers concurrently. If one fails, the others are not affected. */
  #callWatchers(step: string, ms: number, call: AttendanceCallback): Promise<void> {
    return this.#runAll(this.#attendances, step, ms, call);
  }

  async #runAll(
    attendances: readonly NamedAttendance[],
    step: string,
    ms: number,
    call: AttendanceCallback,
  ): Promise<void> {
    await Promise.all(
      attendances.map(({ name, attendance }) =>
        withTimeout(ms, `${name} (${step})`, async () => call(attendance)).catch(error =>
          this.#log.error(`session.${step}_failed`, { what: name, reason: reason(error) }),
        ),
      ),
    );
  }
}

export class LiveSessions {
  readonly #byId = new Map<SessionId, LiveSession>();

  add(session: LiveSession): void {
    this.#byId.set(session.id, session);
  }

  get(id: SessionId): LiveSession | undefined {
    return this.#byId.get(id);
  }

  remove(id: SessionId): void {
    this.#byId.delete(id);
  }

  get isEmpty(): boolean {
    return this.#byId.size === 0;
  }

  get all(): readonly LiveSession[] {
    return [...this.#byId.values()];
  }
}
