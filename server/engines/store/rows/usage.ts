// The host resources that sessions used.
import type { SessionId } from '../../../kit/ids.ts';

export interface SessionUsageRow {
  readonly sessionId: SessionId;
  /** Processor time. Absent if the kernel does not count it. */
  readonly cpuMs?: number;
  readonly peakMemoryBytes?: number;
  readonly bytesReceived: number;
  readonly bytesSent: number;
}

export interface UsageRows {
  /**
   * Does not check the application of the session. The caller must check it first, by reading the session with its
   * application id.
   */
  ofSession(session: SessionId): Promise<SessionUsageRow | undefined>;
  /** Never replaces a value with a smaller one. Sessions that have been deleted in the meantime are left out. */
  save(rows: readonly SessionUsageRow[]): Promise<void>;
}
