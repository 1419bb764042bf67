// Ends a session in three steps: the decision is written, the browser is ended, and the row moves to its final status.
// If the process dies in between, the task that ends due sessions completes the work from the row.
import type { BoxEnd } from '../../engines/slots/slots.ts';
import type { SessionEnd, SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import { reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { SingleFlight } from '../../kit/single-flight.ts';
import { pollUntil, withTimeout } from '../../kit/wait.ts';
import { type DecidedEnd, withActorAndDetail } from './actors.ts';
import type { LiveSession, LiveSessions } from './live.ts';
import { hasEnded } from './session.ts';
import type { StartingSessions } from './starting.ts';
import type { Watchers } from './watchers.ts';

const BOX_END_WAIT_MAX_MS = 1_000;
/** How long to wait for the host of the session to carry out an end. */
const OTHER_HOST_TIMEOUT_MS = 20_000;
const OTHER_HOST_POLL_INTERVAL_MS = 250;

export interface EndingsParts extends Pick<Runtime, 'clock' | 'log' | 'trace'> {
  readonly rows: Pick<SessionRows, 'byId' | 'decideEnd' | 'finish'>;
  readonly liveSessions: LiveSessions;
  readonly starting: StartingSessions;
  readonly watchers: Watchers;
  readonly onEnd: (row: SessionRow) => void;
  /** Whether another host owns the browser of the session and carries out the end that is decided here. */
  readonly isElsewhere: (row: SessionRow) => boolean;
  /** When the files and the row of a session that ends at this time are due for deletion. */
  readonly dueTimes: (endedAt: Date) => { readonly filesDueAt: Date; readonly forgetDueAt: Date };
}

interface UnwrittenEnd {
  readonly end: SessionEnd;
  /**
   * The time of the first attempt. The session ended at this time, and is not charged for the time until its end is
   * written.
   */
  readonly at: Date;
}

export class Endings {
  readonly #parts: EndingsParts;
  readonly #runningEnds = new SingleFlight<SessionId, SessionRow | undefined>();
  /** Ends that could not be written because the database did not respond. */
  readonly #unwrittenEnds = new Map<SessionId, UnwrittenEnd>();

  constructor(parts: EndingsParts) {
    this.#parts = parts;
  }

  /**
   * Ends the session, unless its end was already decided. Returns the row in its final status, or undefined if there is
   * no such session.
   */
  end(id: SessionId, end: DecidedEnd): Promise<SessionRow | undefined> {
    return this.complete(id, end);
  }

  /** Like `end`, for an end that was decided earlier, perhaps by another version of the server. */
  complete(id: SessionId, end: SessionEnd): Promise<SessionRow | undefined> {
    return this.#runningEnds.run(id, () => this.#tryToEnd(id, end));
  }

  /** Tracks a session that was started or adopted, and ends it when its browser ends. */
  watch(liveSession: LiveSession): void {
    this.#parts.liveSessions.add(liveSession);
    const browserFailure = liveSession.browser.failed.then(
      error => ({ why: 'killed', detail: reason(error) }) as const,
    );
    void Promise.race([liveSession.box.whenGone, browserFailure]).then(async end => {
      if (liveSession.isOpen) await this.end(liveSession.id, await endOfBox(liveSession, end)).catch(() => {}); // `settle` writes the end later.
    });
  }

  /** Whether there are ends that have not been written yet. */
  get hasUnwrittenEnds(): boolean {
    return this.#unwrittenEnds.size > 0;
  }

  /** Whether the end of this session could not be written yet. */
  isUnwritten(id: SessionId): boolean {
    return this.#unwrittenEnds.has(id);
  }

  /** Tries to write the ends that could not be written. Returns how many were written; the others are tried again. */
  async settle(): Promise<number> {
    const unwrittenEnds = [...this.#unwrittenEnds];
    const results = await Promise.allSettled(unwrittenEnds.map(([id, { end }]) => this.complete(id, end)));
    return results.filter(({ status }) => status === 'fulfilled').length;
  }

  async #tryToEnd(id: SessionId, end: SessionEnd): Promise<SessionRow | undefined> {
    const unwrittenEnd = this.#unwrittenEnds.get(id);
    const at = this.#parts.clock.now();
    try {
      const row = await this.#end(id, unwrittenEnd?.end ?? end, unwrittenEnd?.at);
      this.#unwrittenEnds.delete(id);
      return row;
    } catch (error) {
      this.#unwrittenEnds.set(id, unwrittenEnd ?? { end, at });
      this.#parts.log.error('session.end_not_written', { sessionId: id, reason: reason(error) });
      throw error;
    }
  }

  /** `firstAttemptAt` is the time of the first attempt, if the end could not be written at that time. */
  async #end(id: SessionId, end: SessionEnd, firstAttemptAt: Date | undefined): Promise<SessionRow | undefined> {
    const { rows, liveSessions, starting, watchers, clock, log, trace, onEnd, dueTimes, isElsewhere } = this.#parts;
    const startMs = clock.monotonicMs();
    const decidedRow = await trace.runInSpan('session.decide_end', () =>
      rows.decideEnd(id, withActorAndDetail(end), firstAttemptAt ?? clock.now()),
    );
    if (!decidedRow) return this.#closeEndedSession(id);
    const decidedEnd = decidedRow.end ?? end;
    if (isElsewhere(decidedRow)) return this.#waitForOtherHost(id);
    await starting.cancel(id);
    const live = liveSessions.get(id);
    if (live)
      await live
        .close(decidedEnd, remains => watchers.salvage(decidedRow, remains))
        .catch(error => log.error('session.close_failed', { sessionId: id, error }));
    liveSessions.remove(id);
    const endedAt = firstAttemptAt ?? clock.now();
    const row = await trace.runInSpan('session.finish', () =>
      rows.finish(id, endedAt, decidedRow.proxyBytes, dueTimes(endedAt)),
    );
    if (row) {
      onEnd(row);
      watchers.ended(row);
    }
    log.info('session.ended', {
      sessionId: id,
      ...decidedEnd,
      tookMs: Math.round(clock.monotonicMs() - startMs),
    });
    return row;
  }

  /**
   * Called when the row shows that another host has ended the session because it considered this host lost. If the
   * browser is still running here, it is ended without an event.
   */
  async #closeEndedSession(id: SessionId): Promise<SessionRow | undefined> {
    const { rows, liveSessions, starting, watchers, log } = this.#parts;
    const row = await rows.byId(id);
    await starting.cancel(id);
    const live = liveSessions.get(id);
    if (!row?.end || !live) return row;
    await live
      .close(row.end, remains => watchers.salvage(row, remains))
      .catch(error => log.error('session.close_failed', { sessionId: id, error }));
    liveSessions.remove(id);
    log.warn('session.ended_elsewhere', { sessionId: id, ...row.end });
    return row;
  }

  /** Waits until the host of the session has ended it. That host reads the decision from the row. */
  #waitForOtherHost(id: SessionId): Promise<SessionRow | undefined> {
    const { rows } = this.#parts;
    const readIfEnded = async (): Promise<SessionRow | undefined> => {
      const row = await rows.byId(id);
      return row === undefined || hasEnded(row) ? row : undefined;
    };
    return pollUntil(
      OTHER_HOST_TIMEOUT_MS,
      `session ${id} to be ended by its host`,
      readIfEnded,
      OTHER_HOST_POLL_INTERVAL_MS,
    ).catch(() => rows.byId(id));
  }
}

/**
 * Waits briefly for the box to report its end. The pipe often breaks shortly before that, and only the box can report
 * the reason.
 */
async function endOfBox(liveSession: LiveSession, boxEnd: Pick<BoxEnd, 'why' | 'detail'>): Promise<DecidedEnd> {
  const box = await withTimeout(BOX_END_WAIT_MAX_MS, 'the box to report its end', () => liveSession.box.whenGone).catch(
    () => undefined,
  );
  const { why, detail } = box ?? boxEnd;
  if (why === 'out_of_memory') return { status: 'ERROR', reason: 'out_of_memory', detail };
  if (why === 'disk_limit') return { status: 'ERROR', reason: 'disk_limit', detail };
  return { status: 'ERROR', reason: 'crashed', detail };
}
