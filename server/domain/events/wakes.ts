// Wakes event streams when events have been committed, in this process or another. A wake may be spurious; a lost wake
// delays the stream until its next poll.
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import type { Closeable } from '../../kit/scope.ts';

export class Wakes implements Closeable {
  readonly #clock: Clock;
  readonly #wakes = new Set<Wake>();
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

  register(application: ApplicationId, session: SessionId | undefined): Wake {
    const wake = new Wake(this.#clock, application, session, () => this.#wakes.delete(wake));
    this.#wakes.add(wake);
    return wake;
  }

  async close(): Promise<void> {
    await this.#subscription?.close();
  }

  #handleNotification(payload: string): void {
    const [application, session] = payload.split(' ');
    for (const wake of this.#wakes)
      if (wake.application === application && (wake.session === undefined || wake.session === session)) wake.trigger();
  }

  #wakeAll(): void {
    for (const wake of this.#wakes) wake.trigger();
  }
}

export class Wake {
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
