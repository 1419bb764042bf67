// Bytes that are buffered for slow readers: CDP clients, viewers, HTTP responses. If a session, an application or the
// process exceeds its bound, the connection with the largest buffer is closed; the others stay open.
import { type Bounds, type Level, type LevelKind, type Owner, type Share, Totals } from '../../kit/totals.ts';

const MIB = 1024 ** 2;
/**
 * The largest message to a client is 256 MiB, and a client may have 64 MiB unread. The bound of a session must have
 * room for both.
 */
export const UNREAD_BYTES_MAX: Bounds = { session: 320 * MIB, application: 512 * MIB, process: 1024 * MIB };

export interface WaitingSource {
  /** The number of bytes buffered now. Called often. */
  bytes(): number;
  /** Called if a session, an application or the process exceeds its bound and this buffer is the largest in it. */
  close(bound: LevelKind): void;
}

export interface BytesWatch {
  /** Must be called whenever bytes have been added or removed. */
  note(): void;
  close(): void;
}

export class WaitingBytes {
  readonly #totals: Totals;
  readonly #sources = new Map<Share, WaitingSource>();

  constructor(bounds: Bounds = UNREAD_BYTES_MAX) {
    this.#totals = new Totals(bounds);
  }

  watch(owner: Owner, source: WaitingSource): BytesWatch {
    const share = this.#totals.open(owner);
    this.#sources.set(share, source);
    return {
      note: () => {
        const bytes = source.bytes();
        if (bytes === share.amount || !this.#sources.has(share)) return;
        const hasGrown = bytes > share.amount;
        share.set(bytes);
        if (hasGrown && share.exceededLevel) this.#closeLargest(share);
      },
      close: () => this.#remove(share),
    };
  }

  #closeLargest(share: Share): void {
    for (let level = share.exceededLevel; level; level = share.exceededLevel) {
      this.#recount(level);
      if (level.sum <= level.max) continue;
      const largestShare = largestShareOf(level);
      const source = this.#sources.get(largestShare);
      // The connection is no longer counted, because nothing is added to its buffer before it is closed.
      this.#remove(largestShare);
      source?.close(level.kind);
    }
  }

  /** Counts again, because the receivers may have read some bytes since the last call of `note`. */
  #recount(level: Level): void {
    for (const share of level.shares) share.set(this.#sources.get(share)?.bytes() ?? 0);
  }

  #remove(share: Share): void {
    this.#sources.delete(share);
    share.close();
  }
}

const largestShareOf = ({ shares }: Level): Share =>
  [...shares].reduce((biggest, share) => (share.amount > biggest.amount ? share : biggest));
