// Counts the bytes of one session: the bytes that earlier processes stored, plus the bytes that its egress proxy counts
// now. If the session has a budget, the count is checked often, and `onUsedUp` is called when the budget is reached.
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import type { Clock } from '../../kit/clock.ts';
import type { SessionEgress } from '../sessions/browser-host.ts';

/** The budget can be exceeded by the bytes that are transferred within this interval. */
const BUDGET_CHECK_INTERVAL_MS = 100;
/** A process that is killed loses at most the bytes of this interval. */
const SAVE_INTERVAL_MS = 5_000;

export interface Traffic {
  /** Bytes through upstream proxies. */
  readonly proxyBytes: number;
  /** All bytes, sent and received. */
  readonly egressBytes: number;
}

export interface MeterParts {
  readonly row: SessionRow;
  readonly egress: SessionEgress;
  readonly budget: number | undefined;
  readonly clock: Clock;
  readonly save: (traffic: Traffic) => Promise<void>;
  readonly onUsedUp: () => void;
}

export class Meter {
  readonly #parts: MeterParts;
  readonly #closeController = new AbortController();

  constructor(parts: MeterParts) {
    this.#parts = parts;
  }

  get traffic(): Traffic {
    const { row, egress } = this.#parts;
    const { bytesUp, bytesDown, bytesByProxy } = egress.counters();
    return { proxyBytes: row.proxyBytes + bytesByProxy, egressBytes: row.egressBytes + bytesUp + bytesDown };
  }

  /** Checks the budget and saves the count until the meter is closed. */
  async run(): Promise<void> {
    const { budget, clock, save, onUsedUp: reportUsedUp } = this.#parts;
    const { signal } = this.#closeController;
    let savedAtMs = clock.monotonicMs();
    for (;;) {
      await clock.sleep(budget === undefined ? SAVE_INTERVAL_MS : BUDGET_CHECK_INTERVAL_MS, signal).catch(() => {});
      if (signal.aborted) return;
      if (budget !== undefined && this.traffic.egressBytes >= budget) return reportUsedUp();
      if (clock.monotonicMs() - savedAtMs < SAVE_INTERVAL_MS) continue;
      savedAtMs = clock.monotonicMs();
      await save(this.traffic).catch(() => {});
    }
  }

  close(): void {
    this.#closeController.abort(new Error('the meter is closing'));
  }
}
