// Server processes that run sessions.
import type { HostId } from '../../../kit/ids.ts';

export interface HostRow {
  readonly id: HostId;
  readonly region: string;
  readonly slots: number;
  readonly startedAt: Date;
}

export interface Hosts {
  /** Inserts or replaces this process's row. */
  announce(row: HostRow): Promise<void>;
}
