// A session that runs in this process: its browser, box and clients, and the list of all of them. What is not here runs
// on another host, or not at all.
import type { Box } from '../../engines/slots/slots.ts';
import type { SessionEnd, SessionRow } from '../../engines/store/store.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import type { Closeable, Scope } from '../../kit/scope.ts';
import { fault } from '../faults.ts';
import type { Booted } from './boot.ts';
import type { Browser } from './machinery.ts';
import type { Presence } from './presence.ts';

/** CDP sockets at once on one session. */
export const CLIENTS_MAX = 20;

/** Why a client's socket is closed: the WebSocket close code and its reason in words. */
export interface Farewell {
  readonly code: number;
  readonly words: string;
}

export const FAREWELLS = {
  released: { code: 1000, words: 'the session was released' },
  clientClosed: {
    code: 1000,
    words: 'the client closed its browser; the session is kept and can be connected to again',
  },
  restart: { code: 1001, words: 'the service restarts; connect again to the same address' },
  timedOut: { code: 4001, words: 'the session reached its time limit' },
  failed: { code: 4002, words: 'the browser ended unexpectedly' },
  idle: { code: 4003, words: 'no command came for 600 seconds' },
} as const satisfies Record<string, Farewell>;

export function farewellOf(end: SessionEnd): Farewell {
  if (end.status === 'COMPLETED') return { ...FAREWELLS.released, words: `session ended: ${end.reason}` };
  if (end.status === 'TIMED_OUT') return { ...FAREWELLS.timedOut, words: `session ended: ${end.reason}` };
  return { ...FAREWELLS.failed, words: `session ended: ${end.reason}` };
}

export interface AttachedClient {
  /** Whether its presence keeps the session alive; the session's own extensions do not count. */
  readonly counts: boolean;
  /** Closes its socket and its channel. */
  bye(farewell: Farewell): Promise<void>;
}

export class LiveSession {
  readonly id: SessionId;
  readonly applicationId: ApplicationId;
  readonly keepAlive: boolean;
  readonly browser: Browser;
  readonly box: Box;
  readonly presence: Presence;
  readonly #egress: Closeable;
  readonly #scope: Scope;
  readonly #clients = new Set<AttachedClient>();
  #leaving = false;

  constructor(row: SessionRow, parts: Booted, presence: Presence) {
    this.id = row.id;
    this.applicationId = row.applicationId;
    this.keepAlive = row.keepAlive;
    this.browser = parts.browser;
    this.box = parts.box;
    this.#egress = parts.egress;
    this.presence = presence;
    this.#scope = parts.scope;
  }

  get clients(): number {
    return this.#clients.size;
  }

  /** False once it is being closed: its browser's end is then no news. */
  get stands(): boolean {
    return !this.#leaving;
  }

  admit(client: AttachedClient): void {
    if (this.#leaving) throw fault('session_ended', `Session ${this.id} is ending.`);
    if (this.#clients.size >= CLIENTS_MAX)
      throw fault('client_limit', `Session ${this.id} has ${CLIENTS_MAX} clients already, which is the limit.`, {
        advice: 'Close one of them, or create another session.',
        details: { limit: CLIENTS_MAX, used: this.#clients.size },
      });
    this.#clients.add(client);
    if (client.counts) this.presence.came();
  }

  dismiss(client: AttachedClient): void {
    if (!this.#clients.delete(client)) return;
    if (client.counts && !this.#leaving) this.presence.left();
  }

  /** Ends the browser and everything of it. */
  async close(farewell: Farewell): Promise<void> {
    await this.#sayGoodbye(farewell);
    await this.#scope.close();
  }

  /** Lets go of it without ending it: a successor process takes over. */
  async abandon(): Promise<void> {
    await this.#sayGoodbye(FAREWELLS.restart);
    await this.browser.close();
    await this.#egress.close();
    await this.box.abandon();
  }

  async #sayGoodbye(farewell: Farewell): Promise<void> {
    this.#leaving = true;
    await Promise.all([...this.#clients].map(client => client.bye(farewell)));
    await this.presence.settled();
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

  get all(): readonly LiveSession[] {
    return [...this.#byId.values()];
  }
}
