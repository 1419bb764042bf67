// The state of control of one session in this process, and its consequences for the session: the cover, which hides its
// pages, the hold, which keeps it from ending, the allowed origins, the queue of the agent, and the time at which
// control ends.
import type { HandoffRow } from '../../engines/store/rows/handoffs.ts';
import { addMs, callAt } from '../../kit/clock.ts';
import type { Closeable } from '../../kit/scope.ts';
import { withTimeout } from '../../kit/wait.ts';
import type { Cover } from '../sessions/live.ts';
import { AgentQueue } from './agent-queue.ts';
import { allowOnlyOrigins, type Control, controlOf } from './control.ts';
import type { LeasedSession, LeaseParts } from './lease-parts.ts';

/**
 * If the live view of a person has been closed for longer than this, the person is considered to have left the
 * hand-off.
 */
export const VIEWER_GONE_TIMEOUT_MS = 60_000;
/** Maximum time that pages have to discard their console messages before a hand-off ends. */
const DISCARD_CONSOLE_MAX_MS = 2_000;

export interface LeaseStateParts extends Pick<LeaseParts, 'clock'> {
  readonly session: LeasedSession;
  /** Called when the time of the open hand-off or of its lease has run out. */
  readonly onDue: (row: HandoffRow) => void;
  /** Called with an error that does not end control. */
  readonly onFailed: (error: unknown) => void;
}

export class LeaseState {
  readonly queue: AgentQueue;
  readonly #parts: LeaseStateParts;
  readonly #listeners = new Set<() => void>();
  #row: HandoffRow | undefined;
  #control: Control | undefined;
  /** Number of live views of the person in control. */
  #attachedViewCount = 0;
  #goneAt: Date | undefined;
  #hold: { close(): void } | undefined;
  #guard: Closeable | undefined;
  #timer: { close(): void } | undefined;
  #isClosed = false;
  /** Whether a masked hand-off is over but the agent may not continue yet. */
  #isEnding = false;
  /** Number of calls of `set`. Only the latest call takes effect. */
  #changeNumber = 0;

  constructor(parts: LeaseStateParts) {
    this.#parts = parts;
    this.queue = new AgentQueue(parts.clock);
  }

  /** Continues from the state that a previous process stored. */
  async adopt(row: HandoffRow): Promise<void> {
    await this.set(row);
    // The live views of the person in control were disconnected, and the person might not open another one.
    if (this.#control && this.#attachedViewCount === 0) this.#startGoneTimer();
    if (row.status === 'claimed') await this.openGuard(row);
  }

  get row(): HandoffRow | undefined {
    return this.#row;
  }

  get control(): Control | undefined {
    return this.#control;
  }

  get wasRequested(): boolean {
    return this.#row !== undefined && this.#row.origin !== 'viewer';
  }

  isFresh(fence: number): boolean {
    return !this.#isEnding && this.#control?.fence === fence && this.#control.expiresAt > this.#parts.clock.now();
  }

  onChange(listener: () => void): { close(): void } {
    this.#listeners.add(listener);
    return { close: () => void this.#listeners.delete(listener) };
  }

  /**
   * Applies the committed state. At the end of a masked hand-off, pages discard their console messages before a client
   * that could receive these messages is admitted. Otherwise, Chromium would send them again to each channel that
   * enables the `Runtime` or `Log` domain later.
   */
  async set(row: HandoffRow | undefined): Promise<void> {
    const ownChangeNumber = ++this.#changeNumber;
    const control = row && controlOf(row);
    if (this.#control?.isMasked && !control?.isMasked) {
      this.#isEnding = true;
      this.#timer?.close();
      const discardPromise = withTimeout(DISCARD_CONSOLE_MAX_MS, 'the pages to discard their console messages', () =>
        this.#parts.session.browser.discardConsole(),
      );
      await discardPromise.catch(this.#parts.onFailed);
    }
    if (ownChangeNumber === this.#changeNumber) this.#apply(row, control);
  }

  #apply(row: HandoffRow | undefined, control: Control | undefined): void {
    this.#isEnding = false;
    const previousState = { id: this.#row?.id, status: this.#row?.status, fence: this.#control?.fence };
    this.#row = row;
    this.#control = control;
    // The first live view may be opened at any time during the lease, so the time without a view is not limited yet.
    if (control && control.fence !== previousState.fence && control.wasRequested && this.#attachedViewCount === 0)
      this.#goneAt = undefined;
    this.#parts.session.setCover(control?.wasRequested && row?.record !== 'keep' ? (row?.record as Cover) : undefined);
    if (this.wasRequested) this.#hold ??= this.#parts.session.hold();
    else this.#releaseHold();
    if (!control) this.#closeGuard();
    this.#scheduleDue();
    if (!control) this.queue.release();
    if (row?.id === previousState.id && row?.status === previousState.status && control?.fence === previousState.fence)
      return;
    for (const listener of [...this.#listeners]) listener();
  }

  /** Ends control in this process, before the end is recorded. */
  dropControl(): void {
    this.#control = undefined;
    this.#timer?.close();
  }

  async openGuard({ allowedOrigins }: HandoffRow): Promise<void> {
    if (!allowedOrigins) return;
    const guard = await this.#parts.session.browser.restrictNavigations(allowOnlyOrigins(allowedOrigins));
    this.#closeGuard();
    this.#guard = guard;
    // Control may have ended while the restriction was being set up.
    if (!this.#control) this.#closeGuard();
  }

  /** Called when the person in control opens a live view. Close the returned handle when that view closes. */
  attachView(): { close(): void } {
    this.#attachedViewCount++;
    this.#goneAt = undefined;
    this.#scheduleDue();
    return {
      close: () => {
        if (--this.#attachedViewCount > 0) return;
        this.#startGoneTimer();
      },
    };
  }

  /**
   * Called when the person has renewed the lease. The renewal means that the person is present, even if no live view is
   * open.
   */
  recordRenewal(): void {
    if (this.#goneAt) this.#startGoneTimer();
  }

  /** Stops all timers, so that nothing becomes due. */
  stopWaiting(): void {
    this.#isClosed = true;
    this.#timer?.close();
  }

  /** Releases the queue and the hold. Called when the session has ended or is left to the next process. */
  close(): void {
    this.queue.release();
    this.#releaseHold();
    this.#listeners.clear();
  }

  #startGoneTimer(): void {
    this.#goneAt = addMs(this.#parts.clock.now(), VIEWER_GONE_TIMEOUT_MS);
    this.#scheduleDue();
  }

  #releaseHold(): void {
    this.#hold?.close();
    this.#hold = undefined;
  }

  #closeGuard(): void {
    const guard = this.#guard;
    this.#guard = undefined;
    if (guard) Promise.resolve(guard.close()).catch(this.#parts.onFailed);
  }

  #scheduleDue(): void {
    this.#timer?.close();
    const row = this.#row;
    if (!row || this.#isClosed) return;
    this.#timer = callAt(this.#parts.clock, this.#dueAt(row), () => this.#parts.onDue(row));
  }

  #dueAt({ status, expiresAt, leaseExpiresAt = expiresAt, origin }: HandoffRow): Date {
    if (status === 'requested') return expiresAt;
    const goneAt = origin === 'viewer' ? undefined : this.#goneAt;
    return goneAt && goneAt < leaseExpiresAt ? goneAt : leaseExpiresAt;
  }
}
