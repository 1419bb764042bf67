// Counts the bytes of each application's sessions by UTC day, and ends the sessions of an application that has used up
// its daily bytes. The counts of the egress proxies are added to the database in batches.
import type { EgressPolicy } from '../../engines/egress/policy.ts';
import type { EgressDays } from '../../engines/store/rows/egress-days.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { configuredLimits } from '../limits/browser-limits.ts';
import { utcDay } from '../limits/utc-day.ts';
import type { DecidedEnd } from '../sessions/actors.ts';
import type { LiveSession } from '../sessions/live.ts';
import type { Watcher } from '../sessions/watchers.ts';

/** The counting interval. A process that is killed loses the bytes since the last count. */
export const EGRESS_COUNT_INTERVAL_MS = 5_000;

export interface DailyEgressParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly rows: Pick<EgressDays, 'add'>;
  /** The policy that refuses every connection and reports that the daily bytes are used up. */
  readonly usedUpPolicy: EgressPolicy;
  readonly end: (id: SessionId, end: DecidedEnd) => Promise<unknown>;
}

interface CountedSession {
  readonly id: SessionId;
  readonly application: ApplicationId;
  readonly egress: LiveSession['egress'];
  /** The bytes of the session that have already been counted. */
  bytes: number;
}

export class DailyEgress implements Watcher {
  readonly name = 'dailyEgress';
  readonly #parts: DailyEgressParts;
  readonly #sessions = new Map<SessionId, CountedSession>();
  /** Bytes that have been counted but not yet written to the database. */
  #unwrittenBytes = new Map<ApplicationId, number>();

  constructor(parts: DailyEgressParts) {
    this.#parts = parts;
  }

  /**
   * Starts counting a session. The bytes that an earlier process counted for an adopted session are already in the
   * database, and the new proxy starts at 0.
   */
  async attend({ id, egress }: Pick<LiveSession, 'id' | 'egress'>, row: Pick<SessionRow, 'applicationId'>) {
    this.#sessions.set(id, { id, application: row.applicationId, egress, bytes: 0 });
    return undefined;
  }

  /** Stops counting a session, after adding the bytes that the browser transferred while it was being closed. */
  async salvage({ id }: Pick<SessionRow, 'id'>): Promise<void> {
    this.#stopCounting(id);
  }

  ended({ id }: Pick<SessionRow, 'id'>): void {
    this.#stopCounting(id);
  }

  /**
   * Writes the new bytes, and ends the sessions of applications that have used up their daily bytes. Returns the number
   * of ended sessions.
   */
  async count(): Promise<{ ended: number }> {
    const { rows, clock } = this.#parts;
    for (const session of this.#sessions.values()) this.#countNewBytes(session);
    const bytesToWrite = this.#unwrittenBytes;
    if (bytesToWrite.size === 0) return { ended: 0 };
    this.#unwrittenBytes = new Map();
    try {
      const totals = await rows.add(utcDay(clock.now()), bytesToWrite);
      return { ended: totals.reduce((ended, total) => ended + this.#enforce(total), 0) };
    } catch (error) {
      for (const [application, bytes] of bytesToWrite) this.#add(application, bytes);
      throw error;
    }
  }

  #enforce(total: { applicationId: ApplicationId; bytes: number; configured: JsonObject }): number {
    const { egressBytesPerDay } = configuredLimits(total.configured);
    if (total.bytes < egressBytesPerDay) return 0;
    const sessionsToEnd = [...this.#sessions.values()].filter(({ application }) => application === total.applicationId);
    const detail = `the application used up its egressBytesPerDay (${egressBytesPerDay})`;
    for (const { id, egress } of sessionsToEnd) {
      egress.replacePolicy(this.#parts.usedUpPolicy);
      void this.#parts.end(id, { status: 'ERROR', reason: 'egress_limit', detail }).catch(() => {});
    }
    return sessionsToEnd.length;
  }

  #stopCounting(id: SessionId): void {
    const session = this.#sessions.get(id);
    if (session) this.#countNewBytes(session);
    this.#sessions.delete(id);
  }

  #countNewBytes(session: CountedSession): void {
    const { bytesUp, bytesDown } = session.egress.counters();
    const bytes = bytesUp + bytesDown;
    if (bytes > session.bytes) this.#add(session.application, bytes - session.bytes);
    session.bytes = bytes;
  }

  #add(application: ApplicationId, bytes: number): void {
    this.#unwrittenBytes.set(application, (this.#unwrittenBytes.get(application) ?? 0) + bytes);
  }
}
