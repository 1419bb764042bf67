// Wakes event streams when events have been committed, in this process or another. A stream may be woken without a new
// event. If a wake is lost, the stream is delayed until its next poll.
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import type { Closeable } from '../../kit/scope.ts';

export class StreamWakers implements Closeable {
  readonly #clock: Clock;
  readonly #wakers = new Set<StreamWaker>();
  #subscription: Closeable | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async listen(listen: Store['listen']): Promise<void> {
    this.#subscription = await listen(
      'session_event',
      payload => this.#handleNotification(payload),
      () => this.#wakeAll(),
    );
  }

  register(application: ApplicationId, session: SessionId | undefined): StreamWaker {
    const waker = new StreamWaker(this.#clock, application, session, () => this.#wakers.delete(waker));
    this.#wakers.add(waker);
    return waker;
  }

  async close(): Promise<void> {
    await this.#subscription?.close();
  }

  #handleNotification(payload: string): void {
    const [application, session] = payload.split(' ');
    for (const waker of this.#wakers)
      if (waker.application === application && (waker.session === undefined || waker.session === session))
        waker.trigger();
  }

  #wakeAll(): void {
    for (const waker of this.#wakers) waker.trigger();
  }
}

class StreamWaker {
  readonly application: ApplicationId;
  readonly session: SessionId | undefined;
  readonly #clock: Clock;
  readonly #forget: () => void;
  #isWoken = false;
  #sleepController: AbortController | undefined;

  constructor(clock: Clock, application: ApplicationId, session: SessionId | undefined, forget: () => void) {
    this.#clock = clock;
    this.application = application;
    this.session = session;
    this.#forget = forget;
  }

  trigger(): void {
    this.#isWoken = true;
    this.#sleepController?.abort();
  }

  /**
   * Resolves at once if `trigger` was called since the last call of `next`. Otherwise resolves on the next call of
   * `trigger`, or after `ms` milliseconds.
   */
  async next(ms: number): Promise<void> {
    if (!this.#isWoken) {
      this.#sleepController = new AbortController();
      await this.#clock.sleep(ms, this.#sleepController.signal).catch(() => {}); // Rejects when the stream is woken.
    }
    this.#isWoken = false;
  }

  close(): void {
    this.#forget();
  }
}
