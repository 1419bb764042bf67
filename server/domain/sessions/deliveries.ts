// Records whether the response to a create was delivered. Official clients that get no response send the create again
// without an idempotency key: they then get the session of the first create instead of a second one.
import type { SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import { addMs } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { KeyId, SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';

/** Official clients do not send a create again after this time. */
const RESEND_PERIOD_MS = 120_000;

/** A create from a client that sends it again if the response is lost. */
export interface ResponseDelivery {
  /** Digest of the body. Equal for identical requests. */
  readonly digest: Buffer;
  readonly isResend: boolean;
  /** Whether the response was sent to a client that was still connected. */
  readonly whenDelivered: Promise<boolean>;
}

export interface ResponseDeliveriesParts extends Pick<Runtime, 'clock' | 'log' | 'host'> {
  readonly rows: Pick<SessionRows, 'recordResponse' | 'claimLostResponse' | 'markResponsesLost'>;
}

export class ResponseDeliveries {
  readonly #parts: ResponseDeliveriesParts;
  readonly #pendingWrites = new Set<Promise<void>>();

  constructor(parts: ResponseDeliveriesParts) {
    this.#parts = parts;
  }

  /** Called before the first request. Marks as lost the responses that the previous process had not sent. */
  async recover(): Promise<void> {
    const lost = await this.#parts.rows.markResponsesLost(this.#parts.host);
    if (lost > 0) this.#parts.log.info('session.responses_lost', { lost });
  }

  follow(id: SessionId, { whenDelivered }: ResponseDelivery): void {
    void whenDelivered.then(wasDelivered => {
      const pendingWrite = this.#write(id, wasDelivered).finally(() => this.#pendingWrites.delete(pendingWrite));
      this.#pendingWrites.add(pendingWrite);
    });
  }

  /**
   * Returns the open session of an earlier create whose response this client did not receive. The response to this
   * request contains that session.
   */
  async claim(key: KeyId, { digest, isResend }: ResponseDelivery): Promise<SessionRow | undefined> {
    if (!isResend) return undefined;
    await Promise.all(this.#pendingWrites);
    return this.#parts.rows.claimLostResponse(key, digest, addMs(this.#parts.clock.now(), -RESEND_PERIOD_MS));
  }

  /**
   * If the write fails, the session cannot be claimed until this server restarts. A repeated request then creates another
   * session.
   */
  async #write(id: SessionId, wasDelivered: boolean): Promise<void> {
    await this.#parts.rows.recordResponse(id, wasDelivered).catch(error => {
      this.#parts.log.warn('session.delivery_not_written', { sessionId: id, reason: reason(error) });
    });
  }
}
