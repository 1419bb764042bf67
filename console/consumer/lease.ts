// The lease of a hand-off: stored for this tab, renewed while the page is running, and ended by the person. A page that
// is suspended loses the lease.
import type { ClaimedHandoff, HandoffOutcome } from '../../contract/handoffs.ts';
import { CommandError } from './parts.ts';

const RENEWALS_PER_LEASE = 3;
const RENEW_INTERVAL_MS_MIN = 5_000;
const RENEW_INTERVAL_MS_MAX = 30_000;
/** The delay before a failed renewal is tried again. */
const RENEW_RETRY_DELAY_MS = 2_000;
const NO_RESPONSE_TEXT = 'The service is not responding. You keep control if it responds again soon.';
const END_CODES: ReadonlySet<string> = new Set(['stale_fence', 'invalid_credentials', 'not_found']);

const storageKeyOf = (id: string): string => `handoff-lease ${id}`;

export class Lease {
  readonly #appId: string;
  readonly #claimedHandoff: ClaimedHandoff;
  readonly #closeController = new AbortController();

  private constructor(appId: string, claimedHandoff: ClaimedHandoff) {
    this.#appId = appId;
    this.#claimedHandoff = claimedHandoff;
  }

  static create(appId: string, claimedHandoff: ClaimedHandoff): Lease {
    sessionStorage.setItem(storageKeyOf(claimedHandoff.handoffId), JSON.stringify(claimedHandoff));
    return new Lease(appId, claimedHandoff);
  }

  /** Restores the lease after a reload of the page. */
  static restore(appId: string, id: string): Lease | undefined {
    const text = sessionStorage.getItem(storageKeyOf(id));
    // The stored value was written by `create`.
    return text === null ? undefined : new Lease(appId, JSON.parse(text) as ClaimedHandoff);
  }

  /** Whether the error means that the lease is no longer held. */
  static isOver(error: unknown): boolean {
    return error instanceof CommandError && END_CODES.has(error.code);
  }

  /**
   * Uses the origin of this page: a service on loopback has several host names, and only this origin may be framed. The
   * controls are hidden, because the page has its own buttons.
   */
  get viewUrl(): string {
    const { pathname, search } = new URL(this.#claimedHandoff.liveViewUrl);
    return `${pathname}${search}&controls=false`;
  }

  /** The complete instructions. Before the person takes control, only the beginning is shown. */
  get instructions(): string {
    return this.#claimedHandoff.instructions;
  }

  complete(outcome: HandoffOutcome, note: string | undefined): Promise<void> {
    return this.#send('complete', { outcome, ...(note === undefined ? {} : { note }) });
  }

  giveBack(): Promise<void> {
    return this.#send('cancel');
  }

  /** Renews the lease until it is closed. */
  startRenewing(onRenewed: () => void, onFailed: (error: unknown) => void): void {
    const { signal } = this.#closeController;
    let retryTimer: ReturnType<typeof setTimeout> | undefined;
    const renew = (): void => {
      clearTimeout(retryTimer);
      this.#send('renew').then(
        () => signal.aborted || onRenewed(),
        error => {
          if (signal.aborted) return;
          onFailed(error instanceof CommandError ? error : new Error(NO_RESPONSE_TEXT));
          if (!Lease.isOver(error)) retryTimer = setTimeout(renew, RENEW_RETRY_DELAY_MS);
        },
      );
    };
    const leaseMs = Date.parse(this.#claimedHandoff.leaseExpiresAt) - Date.now();
    const renewIntervalMs = Math.min(
      Math.max(leaseMs / RENEWALS_PER_LEASE, RENEW_INTERVAL_MS_MIN),
      RENEW_INTERVAL_MS_MAX,
    );
    const timer = setInterval(renew, renewIntervalMs);
    signal.addEventListener('abort', () => {
      clearTimeout(retryTimer);
      clearInterval(timer);
    });
    const onVisibilityChange = (): void => {
      if (!document.hidden) renew();
    };
    // The live view sends this message when it has disconnected for good.
    const onMessage = ({ data, origin }: MessageEvent): void => {
      if (origin === location.origin && data === 'browserbase-disconnected') renew();
    };
    document.addEventListener('visibilitychange', onVisibilityChange, { signal });
    addEventListener('message', onMessage, { signal });
  }

  close(): void {
    sessionStorage.removeItem(storageKeyOf(this.#claimedHandoff.handoffId));
    this.#closeController.abort();
  }

  async #send(action: 'renew' | 'complete' | 'cancel', body: object = {}): Promise<void> {
    const { handoffId, leaseToken } = this.#claimedHandoff;
    const reply = await fetch(`/v1/applications/${this.#appId}/handoffs/${handoffId}/${action}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${leaseToken}` },
      body: JSON.stringify(body),
    });
    if (reply.ok) return;
    const { code = 'internal', message = NO_RESPONSE_TEXT } = Object(await reply.json().catch(() => ({})));
    throw new CommandError(reply.status, String(code), String(message));
  }
}
