// Files on their way to where they are kept.
import type { ApplicationId, HostId } from '../../../kit/ids.ts';

/** A staged file of the host that is to be stored under the key. */
export interface OutboxRow {
  readonly id: string;
  readonly applicationId: ApplicationId;
  readonly hostId: HostId;
  readonly key: string;
  /** Its name in the host's staging folder. */
  readonly staged: string;
  readonly contentType?: string;
  readonly attempts: number;
  readonly dueAt: Date;
  readonly createdAt: Date;
}

export interface OutboxRows {
  add(row: OutboxRow): Promise<void>;
  due(host: HostId, now: Date, batch: number): Promise<OutboxRow[]>;
  /** It failed; counts the attempt. */
  putOff(id: string, dueAt: Date): Promise<void>;
  /** False when it was taken back meanwhile. */
  remove(id: string): Promise<boolean>;
  /** The newest one, should it have been replaced while it waits. */
  byKey(application: ApplicationId, key: string): Promise<OutboxRow | undefined>;
  /** Which of these still wait. */
  waiting(application: ApplicationId, keys: readonly string[]): Promise<ReadonlySet<string>>;
  /** Takes them back. */
  removeKeys(application: ApplicationId, keys: readonly string[]): Promise<OutboxRow[]>;
  /** The keys that wait and begin so. */
  under(application: ApplicationId, prefix: string): Promise<string[]>;
  /** Every staged file that a row of the host names. */
  staged(host: HostId): Promise<ReadonlySet<string>>;
}
