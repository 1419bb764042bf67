// Counts the clients of a session and writes each change to its row, in order. When a client connects, the timers are
// cleared; when the last client disconnects, the grace period starts. Guests, with which the service runs calls in the
// session, count only until the session has had a client. The due time in the row is what ends the session; see
// expire.ts.
import type { SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import { addMs } from '../../kit/clock.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';

export type PresenceRow = Pick<SessionRow, 'id' | 'keepAlive' | 'connectBy' | 'releaseAt'>;

export interface PresenceParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly rows: Pick<
    SessionRows,
    'recordClientConnected' | 'recordClientDisconnected' | 'recordLastClientDisconnected'
  >;
  readonly graceMs: number;
  /** Schedules a run of the task that ends due sessions, after this many milliseconds. */
  readonly scheduleExpiry: (ms: number) => void;
}

export class Presence {
  readonly #id: SessionId;
  readonly #keepAlive: boolean;
  readonly #parts: PresenceParts;
  #clientCount = 0;
  #guestCount = 0;
  #hasHadClient = false;
  #deadline: Date | undefined;
  #lastWrite: Promise<void> = Promise.resolve();
  /** A change that could not be written because the database did not respond. */
  #unwrittenChange: (() => Promise<void>) | undefined;

  constructor({ id, keepAlive, connectBy, releaseAt }: PresenceRow, parts: PresenceParts) {
    this.#id = id;
    this.#keepAlive = keepAlive;
    this.#deadline = connectBy ?? releaseAt;
    this.#parts = parts;
  }

  /** When the session ends unless a client connects. Undefined if the session does not end for that reason. */
  get deadline(): Date | undefined {
    return this.#deadline;
  }

  /** Whether the last write of a change failed, and must be repeated. */
  get hasUnwrittenChange(): boolean {
    return this.#unwrittenChange !== undefined;
  }

  /** The number of connections that keep the session alive. */
  get count(): number {
    return this.#clientCount + (this.#hasHadClient ? 0 : this.#guestCount);
  }

  noteConnected(kind: 'client' | 'guest' = 'client'): void {
    if (kind === 'guest') this.#guestCount++;
    else {
      this.#clientCount++;
      this.#hasHadClient = true;
    }
    if (kind === 'guest' && this.#hasHadClient) return;
    this.#deadline = undefined;
    const [now, clients] = [this.#parts.clock.now(), this.count];
    this.#write(() => this.#parts.rows.recordClientConnected(this.#id, now, clients));
  }

  /** `why` describes the reason if the client did not disconnect by itself. */
  noteDisconnected(kind: 'client' | 'guest' = 'client', why?: string): void {
    if (kind === 'guest') this.#guestCount--;
    else this.#clientCount--;
    if (kind === 'guest' && this.#hasHadClient) return;
    const [now, clients] = [this.#parts.clock.now(), this.count];
    if (clients > 0) return this.#write(() => this.#parts.rows.recordClientDisconnected(this.#id, now, clients, why));
    const releaseAt = this.#keepAlive ? undefined : addMs(now, this.#parts.graceMs);
    this.#deadline = releaseAt;
    this.#write(() => this.#parts.rows.recordLastClientDisconnected(this.#id, releaseAt, now, why));
    if (releaseAt) void this.#lastWrite.then(() => this.#parts.scheduleExpiry(this.#parts.graceMs));
  }

  /**
   * Called when a hold is closed, and when the session has been adopted. Starts the grace period of a session without
   * clients. Returns the time at which the grace period ends, in milliseconds since the epoch.
   */
  startGrace(graceMs = this.#parts.graceMs): number {
    const { clock, scheduleExpiry } = this.#parts;
    const endsAt = addMs(clock.now(), graceMs);
    if (!this.#keepAlive && this.count === 0) {
      this.#deadline = endsAt;
      scheduleExpiry(graceMs);
    }
    return endsAt.getTime();
  }

  /** Resolves when all changes so far have been written. */
  whenWritten(): Promise<void> {
    return this.#lastWrite;
  }

  /** Retries the change that could not be written, unless a newer one is written first. */
  async retryUnwrittenChange(): Promise<void> {
    if (!this.#unwrittenChange) return;
    this.#lastWrite = this.#lastWrite.then(async () => {
      if (this.#unwrittenChange) await this.#attempt(this.#unwrittenChange);
    });
    await this.#lastWrite;
  }

  #write(work: () => Promise<void>): void {
    this.#lastWrite = this.#lastWrite.then(() => this.#attempt(work));
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#unwrittenChange = undefined;
    } catch (error) {
      this.#unwrittenChange = work;
      this.#parts.log.error('session.presence_not_written', { sessionId: this.#id, error });
    }
  }
}
