// How much of recordings waits on this host's disk to be stored, in all and of each session, and when that is too much:
// then the sessions that are full pause until a good part of it is stored.

/** A page of much text that changes all the time writes about 50 MiB a minute. */
const SESSION_BYTES_MAX = 1024 ** 3;
const HOST_BYTES_MAX = 8 * 1024 ** 3;
/** Who has paused goes on below this share, so that a slow store does not make a gap of every slice. */
const RESUMED_AT = 0.75;
/** Below this share nothing is pressing. */
const EASY_BELOW = 0.125;

export interface BacklogLimits {
  readonly sessionBytes?: number;
  readonly hostBytes?: number;
}

export class Backlog {
  readonly #sessionMax: number;
  readonly #hostMax: number;
  readonly #sessions = new Map<string, number>();
  readonly #full = new Set<string>();
  #bytes = 0;
  #isFull = false;

  constructor({ sessionBytes = SESSION_BYTES_MAX, hostBytes = HOST_BYTES_MAX }: BacklogLimits = {}) {
    this.#sessionMax = sessionBytes;
    this.#hostMax = hostBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Less is stored, more is written. */
  grow(session: string, bytes: number): void {
    const left = (this.#sessions.get(session) ?? 0) + bytes;
    if (left > 0) this.#sessions.set(session, left);
    else this.#sessions.delete(session);
    this.#bytes += bytes;
    this.#isFull = isFull(this.#isFull, this.#bytes, this.#hostMax);
    if (isFull(this.#full.has(session), left, this.#sessionMax)) this.#full.add(session);
    else this.#full.delete(session);
  }

  /** What waits may wait for more. */
  isEasyFor(session: string): boolean {
    const waits = this.#sessions.get(session) ?? 0;
    return waits < this.#sessionMax * EASY_BELOW && this.#bytes < this.#hostMax * EASY_BELOW;
  }

  isFullFor(session: string): boolean {
    return this.#isFull || this.#full.has(session);
  }
}

const isFull = (before: boolean, bytes: number, max: number): boolean =>
  before ? bytes > max * RESUMED_AT : bytes >= max;
