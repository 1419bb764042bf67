// Which clients are attached to a session, written to its row in the order it happened: a client's coming clears the
// timers, the last one's leaving starts the grace. The row's due time is what ends the session; see expire.ts.
import type { SessionRows } from '../../engines/store/rows/sessions.ts';
import { type Clock, plus } from '../../kit/clock.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';

export interface PresenceParts {
  readonly rows: SessionRows;
  readonly clock: Clock;
  readonly log: Log;
  readonly graceMs: number;
  /** Asks the expirer to look after this many milliseconds. */
  readonly lookIn: (ms: number) => void;
}

export class Presence {
  readonly #id: SessionId;
  readonly #keepAlive: boolean;
  readonly #parts: PresenceParts;
  #count = 0;
  #written: Promise<void> = Promise.resolve();
  /** What the row should say and does not, because the database was away. */
  #unwritten: (() => Promise<void>) | undefined;

  constructor(id: SessionId, keepAlive: boolean, parts: PresenceParts) {
    this.#id = id;
    this.#keepAlive = keepAlive;
    this.#parts = parts;
  }

  get count(): number {
    return this.#count;
  }

  came(): void {
    this.#count++;
    const [now, clients] = [this.#parts.clock.now(), this.#count];
    this.#write(() => this.#parts.rows.clientCame(this.#id, now, clients));
  }

  /** `why`: in words, where it did not leave by itself. */
  left(why?: string): void {
    this.#count--;
    const [now, clients] = [this.#parts.clock.now(), this.#count];
    if (clients > 0) return this.#write(() => this.#parts.rows.clientLeft(this.#id, now, clients, why));
    const releaseAt = this.#keepAlive ? undefined : plus(now, this.#parts.graceMs);
    this.#write(() => this.#parts.rows.clientsGone(this.#id, releaseAt, now, why));
    if (releaseAt) void this.#written.then(() => this.#parts.lookIn(this.#parts.graceMs));
  }

  /** Resolves when everything so far stands in the row. */
  settled(): Promise<void> {
    return this.#written;
  }

  /** Writes again what could not be written. */
  async catchUp(): Promise<void> {
    if (!this.#unwritten) return;
    this.#write(this.#unwritten);
    await this.#written;
  }

  #write(work: () => Promise<void>): void {
    const write = async (): Promise<void> => {
      try {
        await work();
        this.#unwritten = undefined;
      } catch (error) {
        this.#unwritten = work;
        this.#parts.log.error('session.presence_not_written', { sessionId: this.#id, error });
      }
    };
    this.#written = this.#written.then(write);
  }
}
