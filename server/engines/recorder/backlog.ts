// Counts the bytes of recordings on this host's disk that are waiting to be stored, in total and for each session, and
// decides when there are too many. The recording of a session above its limit pauses until enough of it is stored.

/**
 * The limit for one session. For comparison, a page with a lot of text that changes all the time writes about 50 MiB
 * per minute.
 */
const SESSION_BYTES_MAX = 1024 ** 3;
const HOST_BYTES_MAX = 8 * 1024 ** 3;
/**
 * A paused recording continues when its waiting bytes are below this share of the limit. If it continued just below the
 * limit, slow storage would turn every segment into a gap.
 */
const RESUME_SHARE = 0.75;
/** The encoding of segments may be delayed while the waiting bytes are below this share of both limits. */
const HOLD_BACK_SHARE = 0.125;

export interface BacklogLimits {
  readonly sessionBytes?: number;
  readonly hostBytes?: number;
}

export class Backlog {
  readonly #sessionBytesMax: number;
  readonly #hostBytesMax: number;
  readonly #bytesBySession = new Map<string, number>();
  readonly #fullSessions = new Set<string>();
  #bytes = 0;
  #isFull = false;

  constructor({ sessionBytes = SESSION_BYTES_MAX, hostBytes = HOST_BYTES_MAX }: BacklogLimits = {}) {
    this.#sessionBytesMax = sessionBytes;
    this.#hostBytesMax = hostBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Records a change in the number of waiting bytes: positive when data is written, negative when data is stored. */
  recordChange(session: string, bytes: number): void {
    const remainingBytes = (this.#bytesBySession.get(session) ?? 0) + bytes;
    if (remainingBytes > 0) this.#bytesBySession.set(session, remainingBytes);
    else this.#bytesBySession.delete(session);
    this.#bytes += bytes;
    this.#isFull = isFull(this.#isFull, this.#bytes, this.#hostBytesMax);
    if (isFull(this.#fullSessions.has(session), remainingBytes, this.#sessionBytesMax)) this.#fullSessions.add(session);
    else this.#fullSessions.delete(session);
  }

  /** Whether the encoding of the session's segments may be delayed. */
  mayHoldBack(session: string): boolean {
    const waitingBytes = this.#bytesBySession.get(session) ?? 0;
    return waitingBytes < this.#sessionBytesMax * HOLD_BACK_SHARE && this.#bytes < this.#hostBytesMax * HOLD_BACK_SHARE;
  }

  isFullFor(session: string): boolean {
    return this.#isFull || this.#fullSessions.has(session);
  }
}

const isFull = (wasFull: boolean, bytes: number, max: number): boolean =>
  wasFull ? bytes > max * RESUME_SHARE : bytes >= max;
