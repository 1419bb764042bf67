// The bytes of one session: what earlier processes had counted and what its egress proxy counts now. With a budget it
// looks often, and says when the budget is used up.
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import type { Clock } from '../../kit/clock.ts';
import type { SessionEgress } from '../sessions/machinery.ts';

/** What flows between two looks goes beyond the budget. */
const BUDGET_LOOK_MS = 100;
/** What a process that dies may have counted for nothing. */
const NOTE_MS = 5_000;

export interface Traffic {
  /** By way of other proxies. */
  readonly proxyBytes: number;
  /** All that went out and came in. */
  readonly egressBytes: number;
}

export interface MeterParts {
  readonly row: SessionRow;
  readonly egress: SessionEgress;
  readonly budget: number | undefined;
  readonly clock: Clock;
  readonly note: (traffic: Traffic) => Promise<void>;
  readonly usedUp: () => void;
}

export class Meter {
  readonly #parts: MeterParts;
  readonly #closing = new AbortController();

  constructor(parts: MeterParts) {
    this.#parts = parts;
  }

  get traffic(): Traffic {
    const { row, egress } = this.#parts;
    const { bytesUp, bytesDown, bytesByProxy } = egress.counters();
    return { proxyBytes: row.proxyBytes + bytesByProxy, egressBytes: row.egressBytes + bytesUp + bytesDown };
  }

  /** Looks and notes until it is closed. */
  async run(): Promise<void> {
    const { budget, clock, note, usedUp } = this.#parts;
    const { signal } = this.#closing;
    let notedMs = clock.monotonicMs();
    for (;;) {
      await clock.sleep(budget === undefined ? NOTE_MS : BUDGET_LOOK_MS, signal).catch(() => {});
      if (signal.aborted) return;
      if (budget !== undefined && this.traffic.egressBytes >= budget) return usedUp();
      if (clock.monotonicMs() - notedMs < NOTE_MS) continue;
      notedMs = clock.monotonicMs();
      await note(this.traffic).catch(() => {});
    }
  }

  close(): void {
    this.#closing.abort(new Error('the session leaves'));
  }
}
