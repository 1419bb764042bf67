// The usage of each session: processor time and memory of its box, and bytes of its egress proxy. The final values are
// read when the processes of the box have ended and its cgroup still exists. The values of running sessions are saved
// at intervals.
import type { RecordingRows } from '../../engines/store/rows/recordings.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import type { SessionUsageRow, UsageRows } from '../../engines/store/rows/usage.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { SessionView } from '../sessions/api.ts';
import type { LiveSession } from '../sessions/live.ts';
import type { Watcher } from '../sessions/watchers.ts';

/**
 * How often usage is saved. A process that is killed loses the bytes counted since the last save. The kernel counts the
 * other values in the cgroup of the box, so they are not lost.
 */
export const USAGE_SAVE_INTERVAL_MS = 10_000;

export interface SessionUsageParts {
  readonly rows: UsageRows;
  readonly recordings: Pick<RecordingRows, 'lengths'>;
}

type MeteredSession = Pick<LiveSession, 'id'> & {
  readonly box: Pick<LiveSession['box'], 'resources'>;
  readonly egress: Pick<LiveSession['egress'], 'counters'>;
};

interface UsageMeter {
  /** The usage so far. */
  now(): SessionUsageRow;
  /** The final usage. Set when the processes have ended. */
  final?: SessionUsageRow;
}

export class SessionUsage implements Watcher {
  readonly name = 'usage';
  readonly #parts: SessionUsageParts;
  readonly #meters = new Map<SessionId, UsageMeter>();

  constructor(parts: SessionUsageParts) {
    this.#parts = parts;
  }

  /**
   * Starts measuring a session. The proxy of an adopted session starts at 0, so the bytes that an earlier process saved
   * are added.
   */
  async attend({ id, box, egress }: MeteredSession, { startedAt }: Pick<SessionRow, 'startedAt'>): Promise<undefined> {
    const savedUsage = startedAt === undefined ? undefined : await this.#parts.rows.ofSession(id);
    const now = (): SessionUsageRow => {
      const { bytesUp, bytesDown } = egress.counters();
      const { cpuMs, ...memory } = box.resources();
      return {
        sessionId: id,
        ...(cpuMs === undefined ? {} : { cpuMs: Math.round(cpuMs) }),
        ...memory,
        bytesReceived: (savedUsage?.bytesReceived ?? 0) + bytesDown,
        bytesSent: (savedUsage?.bytesSent ?? 0) + bytesUp,
      };
    };
    this.#meters.set(id, { now });
  }

  async salvage({ id }: Pick<SessionRow, 'id'>): Promise<void> {
    const meter = this.#meters.get(id);
    if (!meter) return;
    meter.final = meter.now();
    await this.#save([meter.final]);
  }

  /** Stops measuring a session whose start failed, because it has no final usage. */
  ended({ id }: Pick<SessionRow, 'id'>): void {
    if (!this.#meters.get(id)?.final) this.#meters.delete(id);
  }

  /**
   * Saves the usage of all sessions. Returns the number of sessions that have ended and whose final usage could not be
   * saved earlier.
   */
  async save(): Promise<{ late: number }> {
    const rows = [...this.#meters.values()].map(({ final, now }) => final ?? now());
    const late = [...this.#meters.values()].filter(({ final }) => final).length;
    await this.#save(rows);
    return { late };
  }

  async describe({ id }: Pick<SessionRow, 'id'>): Promise<Partial<SessionView>> {
    const { rows, recordings } = this.#parts;
    const meter = this.#meters.get(id);
    const [usageRow, lengths] = await Promise.all([
      meter ? (meter.final ?? meter.now()) : rows.ofSession(id),
      recordings.lengths(id),
    ]);
    if (!usageRow) return {};
    const { cpuMs, peakMemoryBytes, bytesReceived, bytesSent } = usageRow;
    const recordedMs = [...lengths.values()].reduce((sum, ms) => sum + ms, 0);
    return {
      usage: {
        ...(cpuMs === undefined ? {} : { cpuSeconds: cpuMs / 1000 }),
        ...(peakMemoryBytes === undefined ? {} : { peakMemoryBytes }),
        ...{ bytesReceived, bytesSent, recordedSeconds: Math.round(recordedMs) / 1000 },
      },
    };
  }

  async #save(rows: readonly SessionUsageRow[]): Promise<void> {
    if (rows.length === 0) return;
    await this.#parts.rows.save(rows);
    for (const row of rows) if (this.#meters.get(row.sessionId)?.final === row) this.#meters.delete(row.sessionId);
  }
}
