// Usage of applications, by hour. Each past hour is summed once and stored; hours that are not stored yet are summed
// when they are read.
import type { ApplicationId, KeyId } from '../../../kit/ids.ts';

export interface UsageSums {
  readonly created: number;
  readonly ended: number;
  /** How many of the `ended` sessions have the status ERROR. */
  readonly failed: number;
  /** The total running time of all sessions within this hour. */
  readonly browserMs: number;
  /**
   * Processor time used by the sessions that ended in this hour, over their whole lifetime. `bytesReceived` and
   * `bytesSent` count the same way.
   */
  readonly cpuMs: number;
  readonly bytesReceived: number;
  readonly bytesSent: number;
}

export interface UsageHour extends UsageSums {
  readonly hour: Date;
  readonly endReasons: Readonly<Record<string, number>>;
  /**
   * The number of sessions by how long they took to start: one element for each bound in `startBoundsMs`, and a last
   * one for sessions that took longer.
   */
  readonly starts: readonly number[];
  /** The maximum number of sessions that were running at once. */
  readonly peak: number;
}

export interface KeyUsage extends UsageSums {
  readonly keyId: KeyId;
  /** Absent if the key was deleted. */
  readonly name?: string;
}

export interface UsagePeriod {
  /** `from` and `to` are each the start of an hour. */
  readonly from: Date;
  readonly to: Date;
  readonly now: Date;
}

export interface UsageHours {
  readonly startBoundsMs: readonly number[];
  /** Hours without any session are left out. */
  ofApplication(application: ApplicationId, period: UsagePeriod): Promise<UsageHour[]>;
  /** Keys with the most browser time first. */
  byKey(application: ApplicationId, period: UsagePeriod, limit: number): Promise<KeyUsage[]>;
  /**
   * Sums and stores the usage of the hours before this time that have not been summed yet, at most `batchSize` hours.
   * Returns the number of hours.
   */
  sum(before: Date, batchSize: number): Promise<number>;
  /** Removes the rows of hours before this time. Returns the number of rows. */
  forget(before: Date): Promise<number>;
}
