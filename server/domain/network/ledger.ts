// Records refused connections, refused navigations, refused pages, and failures of hosts and proxies of a session as
// events. Below, all of them are called refusals. Equal refusals are counted, and reported at most once a second. The
// number of entries and events is limited. Refusals above the limit of entries are counted under `(others)`. Refusals
// above the limit of events are reported when the ledger is closed.
import type { EventRows, SessionEventType } from '../../engines/store/rows/events.ts';
import { reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { SecretTexts } from '../../kit/secret-texts.ts';

const REPORT_INTERVAL_MS = 1_000;
/** Maximum number of distinct refusals that are counted separately. Further refusals are counted as `(others)`. */
const ENTRIES_MAX = 500;
/** Maximum number of events of one ledger. Beyond it, nothing is reported until the ledger is closed. */
const EVENTS_MAX = 300;
const OTHER_REFUSALS = '(others)';

export type NetworkEvent = Extract<
  SessionEventType,
  'network.refused' | 'network.failed' | 'navigation.refused' | 'page.refused' | 'proxy.failed'
>;

export interface LedgerBounds {
  readonly entriesMax: number;
  readonly eventsMax: number;
}

const DEFAULT_BOUNDS: LedgerBounds = { entriesMax: ENTRIES_MAX, eventsMax: EVENTS_MAX };

export interface LedgerParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly session: SessionId;
  readonly events: Pick<EventRows, 'append'>;
  /** Removes secrets, because a page can build a host name from text that was typed into it. */
  readonly secrets: Pick<SecretTexts, 'cleanAll'>;
}

interface Entry {
  readonly type: NetworkEvent;
  readonly facts: Readonly<Record<string, string>>;
  at: Date;
  total: number;
  unreported: number;
}

export class Ledger {
  readonly #parts: LedgerParts;
  readonly #bounds: LedgerBounds;
  readonly #entries = new Map<string, Entry>();
  readonly #closeController = new AbortController();
  #reportedEventCount = 0;
  #pendingReport: Promise<void> | undefined;

  constructor(parts: LedgerParts, bounds = DEFAULT_BOUNDS) {
    this.#parts = parts;
    this.#bounds = bounds;
  }

  /** `facts` are the details of the refusal. Refusals with equal facts are counted together. */
  count(type: NetworkEvent, facts: Entry['facts']): void {
    const entry = this.#entry(type, this.#parts.secrets.cleanAll(facts));
    entry.at = this.#parts.clock.now();
    entry.total += 1;
    entry.unreported += 1;
    if (!this.#closeController.signal.aborted && this.#reportedEventCount < this.#bounds.eventsMax)
      this.#pendingReport ??= this.#reportSoon();
  }

  /** Reports the remaining refusals. Nothing is reported afterwards. */
  async close(): Promise<void> {
    this.#closeController.abort(new Error('the ledger is closing'));
    await this.#pendingReport;
    await this.#report();
  }

  #entry(type: NetworkEvent, facts: Entry['facts']): Entry {
    const key = JSON.stringify([type, facts]);
    const existingEntry = this.#entries.get(key);
    if (existingEntry) return existingEntry;
    if (this.#entries.size >= this.#bounds.entriesMax && facts.hostname !== OTHER_REFUSALS)
      return this.#entry(type, { hostname: OTHER_REFUSALS });
    const entry = { type, facts, at: this.#parts.clock.now(), total: 0, unreported: 0 };
    this.#entries.set(key, entry);
    return entry;
  }

  async #reportSoon(): Promise<void> {
    await this.#parts.clock.sleep(REPORT_INTERVAL_MS, this.#closeController.signal).catch(() => {});
    await this.#report();
    this.#pendingReport = undefined;
    // Report the refusals that were counted during the write.
    if (
      !this.#closeController.signal.aborted &&
      this.#reportedEventCount < this.#bounds.eventsMax &&
      this.#unreportedEntries.length > 0
    )
      this.#pendingReport = this.#reportSoon();
  }

  get #unreportedEntries(): readonly Entry[] {
    return [...this.#entries.values()].filter(entry => entry.unreported > 0);
  }

  async #report(): Promise<void> {
    for (const entry of this.#unreportedEntries) {
      if (this.#reportedEventCount >= this.#bounds.eventsMax && !this.#closeController.signal.aborted) return;
      const count = entry.unreported;
      entry.unreported = 0;
      this.#reportedEventCount += 1;
      await this.#append(entry, count);
    }
  }

  async #append({ type, facts, at, total }: Entry, count: number): Promise<void> {
    const { session, events, log } = this.#parts;
    const event = { type, at, actor: { kind: 'browser' }, detail: { ...facts, count, total } } as const;
    await events
      .append(session, event)
      .catch(error => log.warn('network.event_not_written', { sessionId: session, type, reason: reason(error) }));
  }
}
