// What a session's network refused, as events: the same refusal of the same host is counted, and told at most once a
// second. A page that tries a million hosts costs a bounded list, and its last event says how many were not told alone.
import type { EventRows, SessionEventType } from '../../engines/store/rows/events.ts';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';

const TELL_MS = 1_000;
/** Different refusals that are counted one by one; the rest goes under OTHERS. */
const KINDS_MAX = 500;
/** Events of one session by this list; afterwards it is silent until the end. */
const EVENTS_MAX = 300;
const OTHERS = '(others)';

export type NetworkEvent = Extract<SessionEventType, 'network.refused' | 'navigation.refused' | 'proxy.failed'>;

export interface LedgerParts {
  readonly session: SessionId;
  readonly events: Pick<EventRows, 'append'>;
  readonly clock: Clock;
  readonly log: Log;
}

interface Entry {
  readonly type: NetworkEvent;
  readonly facts: Readonly<Record<string, string>>;
  at: Date;
  total: number;
  untold: number;
}

export class Ledger {
  readonly #parts: LedgerParts;
  readonly #entries = new Map<string, Entry>();
  readonly #closing = new AbortController();
  #told = 0;
  #telling: Promise<void> | undefined;

  constructor(parts: LedgerParts) {
    this.#parts = parts;
  }

  /** `facts`: what tells one kind from another. */
  note(type: NetworkEvent, facts: Entry['facts']): void {
    const entry = this.#entry(type, facts);
    entry.at = this.#parts.clock.now();
    entry.total += 1;
    entry.untold += 1;
    if (!this.#closing.signal.aborted && this.#told < EVENTS_MAX) this.#telling ??= this.#tellSoon();
  }

  /** Tells what is left; nothing is told by itself afterwards. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the session leaves'));
    await this.#telling;
    await this.#tell();
  }

  #entry(type: NetworkEvent, facts: Entry['facts']): Entry {
    const key = JSON.stringify([type, facts]);
    const known = this.#entries.get(key);
    if (known) return known;
    if (this.#entries.size >= KINDS_MAX && facts.hostname !== OTHERS) return this.#entry(type, { hostname: OTHERS });
    const entry = { type, facts, at: this.#parts.clock.now(), total: 0, untold: 0 };
    this.#entries.set(key, entry);
    return entry;
  }

  async #tellSoon(): Promise<void> {
    await this.#parts.clock.sleep(TELL_MS, this.#closing.signal).catch(() => {});
    await this.#tell();
    this.#telling = undefined;
    // What came while we wrote is told in its turn.
    if (!this.#closing.signal.aborted && this.#told < EVENTS_MAX && this.#untold.length > 0)
      this.#telling = this.#tellSoon();
  }

  get #untold(): readonly Entry[] {
    return [...this.#entries.values()].filter(entry => entry.untold > 0);
  }

  async #tell(): Promise<void> {
    for (const entry of this.#untold) {
      if (this.#told >= EVENTS_MAX && !this.#closing.signal.aborted) return;
      const count = entry.untold;
      entry.untold = 0;
      this.#told += 1;
      await this.#append(entry, count);
    }
  }

  async #append({ type, facts, at, total }: Entry, count: number): Promise<void> {
    const { session, events, log } = this.#parts;
    const event = { type, at, actor: { kind: 'browser' }, detail: { ...facts, count, total } } as const;
    await events
      .append(session, event)
      .catch(error => log.warn('network.not_told', { sessionId: session, type, reason: reason(error) }));
  }
}
