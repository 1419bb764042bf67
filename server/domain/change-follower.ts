// Lets requests wait until a value has changed. A database notification wakes the requests. The requests also poll,
// because a notification may be lost, and because there is no notification when something expires.
import type { Channel, Store } from '../engines/store/store.ts';
import type { Clock } from '../kit/clock.ts';
import { Notices } from '../kit/notices.ts';
import type { Closeable } from '../kit/scope.ts';

/** Maximum number of requests that can wait at the same time. Further requests get a response at once. */
const WAITING_REQUESTS_MAX = 1_000;
/** Maximum number of waiting requests per caller, so that one caller cannot use up the total. */
const WAITING_REQUESTS_PER_CALLER_MAX = 50;
const POLL_INTERVAL_MS = 5_000;

export interface ChangeFollowerParts {
  readonly store: Pick<Store, 'listen'>;
  readonly clock: Clock;
}

/** The value whose change a request waits for. */
export interface FollowedValue<T> {
  /** Whether a notification with this text concerns the value. */
  readonly concerns: (notification: string) => boolean;
  /** The caller, if the waiting requests of each caller are limited. */
  readonly caller?: string;
  readonly read: () => Promise<T>;
  readonly isChanged: (value: T) => boolean;
  /** Returns the time at which the value changes without a notification, for example because it expires. */
  readonly changesAt?: (value: T) => Date;
  /** Maximum time between two reads, in milliseconds. Five seconds if absent. */
  readonly pollMs?: number;
}

interface WaitingRequest {
  readonly caller: string | undefined;
  readonly concerns: (notification: string) => boolean;
  readonly wake: () => void;
}

export class ChangeFollower implements Closeable {
  readonly #clock: Clock;
  readonly #waitingRequests = new Set<WaitingRequest>();
  readonly #closeController = new AbortController();
  #subscription: Closeable | undefined;

  private constructor(clock: Clock) {
    this.#clock = clock;
  }

  static async open(channel: Channel, { store, clock }: ChangeFollowerParts): Promise<ChangeFollower> {
    const follower = new ChangeFollower(clock);
    follower.#subscription = await store.listen(
      channel,
      notification => follower.#wake(notification),
      () => follower.#wake(undefined),
    );
    return follower;
  }

  async close(): Promise<void> {
    this.#closeController.abort();
    this.#wake(undefined);
    await this.#subscription?.close();
  }

  /**
   * Returns the value after it has changed, or the current value after `waitSeconds` or when the caller has
   * disconnected.
   */
  async awaitChange<T>(firstValue: T, options: FollowedValue<T>, waitSeconds: number, signal: AbortSignal): Promise<T> {
    const { concerns, caller, read, isChanged, changesAt, pollMs: pollIntervalMs = POLL_INTERVAL_MS } = options;
    if (waitSeconds === 0 || isChanged(firstValue) || this.#isFullFor(caller)) return firstValue;
    const clock = this.#clock;
    const deadlineMs = clock.monotonicMs() + waitSeconds * 1000;
    const wakeNotices = new Notices(clock);
    const waitingRequest: WaitingRequest = { caller, concerns, wake: () => wakeNotices.wake() };
    this.#waitingRequests.add(waitingRequest);
    signal.addEventListener('abort', waitingRequest.wake, { once: true });
    try {
      for (;;) {
        const currentValue = await read();
        const remainingMs = deadlineMs - clock.monotonicMs();
        const isOver = remainingMs <= 0 || signal.aborted || this.#closeController.signal.aborted;
        if (isOver || isChanged(currentValue)) return currentValue;
        const untilChangeMs = changesAt ? changesAt(currentValue).getTime() - clock.now().getTime() : 0;
        await wakeNotices.next(
          Math.min(remainingMs, pollIntervalMs, untilChangeMs > 0 ? untilChangeMs : pollIntervalMs),
        );
      }
    } finally {
      this.#waitingRequests.delete(waitingRequest);
      signal.removeEventListener('abort', waitingRequest.wake);
    }
  }

  /** Whether the maximum number of requests is waiting. Further requests then get a response at once. */
  get isFull(): boolean {
    return this.#waitingRequests.size >= WAITING_REQUESTS_MAX;
  }

  #isFullFor(caller: string | undefined): boolean {
    if (this.isFull || caller === undefined) return this.isFull;
    return (
      [...this.#waitingRequests].filter(other => other.caller === caller).length >= WAITING_REQUESTS_PER_CALLER_MAX
    );
  }

  #wake(notification: string | undefined): void {
    for (const { concerns, wake } of this.#waitingRequests)
      if (notification === undefined || concerns(notification)) wake();
  }
}
