// Reads of Actions that wait for another status.
import type { ActionStatus } from '../../../contract/actions.ts';
import type { ActionRow } from '../../engines/store/rows/actions.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { Notices } from '../../kit/notices.ts';
import type { Closeable } from '../../kit/scope.ts';
import { statusAt } from './state.ts';

/** The most requests that wait at once. Further ones are answered at once. */
const WAITING_MAX = 1_000;
/** How often the row is read, because a notification may be lost. */
const LOOK_MS = 5_000;

export interface FollowingParts {
  readonly store: Pick<Store, 'listen'>;
  readonly clock: Clock;
}

interface Waiting {
  readonly id: string;
  readonly wake: () => void;
}

export class Following implements Closeable {
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiting>();
  readonly #closing = new AbortController();
  #listening: Closeable | undefined;

  private constructor(clock: Clock) {
    this.#clock = clock;
  }

  static async open({ store, clock }: FollowingParts): Promise<Following> {
    const following = new Following(clock);
    following.#listening = await store.listen(
      'action_changed',
      id => following.#wake(id),
      () => following.#wake(undefined),
    );
    return following;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake(undefined);
    await this.#listening?.close();
  }

  /** The row when its status differs from `since`, when the time is up, or when the caller has disconnected. */
  async changed(
    read: () => Promise<ActionRow>,
    { wait = 0, since }: { readonly wait?: number; readonly since?: ActionStatus },
    signal: AbortSignal,
  ): Promise<ActionRow> {
    const first = await read();
    const known = since ?? statusAt(first, this.#clock.now());
    const isChanged = (row: ActionRow): boolean => statusAt(row, this.#clock.now()) !== known;
    if (wait === 0 || isChanged(first) || first.endedAt || this.#waiting.size >= WAITING_MAX) return first;
    const deadlineMs = this.#clock.monotonicMs() + wait * 1000;
    const woken = new Notices(this.#clock);
    const waiting: Waiting = { id: first.id, wake: () => woken.wake() };
    this.#waiting.add(waiting);
    signal.addEventListener('abort', waiting.wake, { once: true });
    try {
      for (;;) {
        const row = await read();
        const leftMs = deadlineMs - this.#clock.monotonicMs();
        if (isChanged(row) || leftMs <= 0 || signal.aborted || this.#closing.signal.aborted) return row;
        const untilExpiryMs = Math.max(1, row.expiresAt.getTime() - this.#clock.now().getTime());
        await woken.next(Math.min(leftMs, LOOK_MS, untilExpiryMs));
      }
    } finally {
      this.#waiting.delete(waiting);
      signal.removeEventListener('abort', waiting.wake);
    }
  }

  #wake(id: string | undefined): void {
    for (const waiting of this.#waiting) if (id === undefined || waiting.id === id) waiting.wake();
  }
}
