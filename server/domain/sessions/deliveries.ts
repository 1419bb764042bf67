// Whether the answer to a create arrived. An official client that hears nothing sends the create again, under no key: it
// gets the session that it never heard of, and no second one.
import type { SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import { type Clock, plus } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { HostId, KeyId, SessionId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';

/** Official clients have given up by then. */
const RESEND_MS = 120_000;

/** A create that its client would send again. */
export interface Delivery {
  /** Of the body; equal for the same request. */
  readonly digest: Buffer;
  readonly isResend: boolean;
  /** Resolves when the answer has left for a client that is still there, or never will. */
  readonly arrived: Promise<boolean>;
}

export interface DeliveriesParts {
  readonly rows: Pick<SessionRows, 'answered' | 'claimLost' | 'loseAnswers'>;
  readonly host: HostId;
  readonly clock: Clock;
  readonly log: Log;
}

export class Deliveries {
  readonly #parts: DeliveriesParts;
  readonly #writing = new Set<Promise<void>>();

  constructor(parts: DeliveriesParts) {
    this.#parts = parts;
  }

  /** Before the first request: what the former process owed did not arrive. */
  async recover(): Promise<void> {
    const lost = await this.#parts.rows.loseAnswers(this.#parts.host);
    if (lost > 0) this.#parts.log.info('session.answers_lost', { lost });
  }

  follow(id: SessionId, { arrived }: Delivery): void {
    void arrived.then(delivered => {
      const writing = this.#write(id, delivered).finally(() => this.#writing.delete(writing));
      this.#writing.add(writing);
    });
  }

  /** The living session whose answer this client is waiting for; it is owed to this request from now on. */
  async claim(key: KeyId, { digest, isResend }: Delivery): Promise<SessionRow | undefined> {
    if (!isResend) return undefined;
    await Promise.all(this.#writing);
    return this.#parts.rows.claimLost(key, digest, plus(this.#parts.clock.now(), -RESEND_MS));
  }

  /** What cannot be written stays owed: at worst a resend begins another session. */
  async #write(id: SessionId, delivered: boolean): Promise<void> {
    await this.#parts.rows.answered(id, delivered).catch(error => {
      this.#parts.log.warn('session.delivery_not_written', { sessionId: id, reason: reason(error) });
    });
  }
}
