// Staged files that are to be stored.
import type { ApplicationId, HostId } from '../../../kit/ids.ts';

/** A file in the host's staging folder that is to be stored under the key. */
export interface OutboxRow {
  readonly id: string;
  readonly applicationId: ApplicationId;
  readonly hostId: HostId;
  readonly key: string;
  /** The file's name in the host's staging folder. */
  readonly staged: string;
  readonly contentType?: string;
  readonly attempts: number;
  readonly dueAt: Date;
  readonly createdAt: Date;
}

export interface OutboxRows {
  /** Adds one or more rows. If this fails, no row is added. */
  add(rows: readonly OutboxRow[]): Promise<void>;
  due(host: HostId, now: Date, batchSize: number): Promise<OutboxRow[]>;
  /** Call when a file could not be stored. Counts the attempt and sets the time of the next one. */
  postpone(id: string, dueAt: Date): Promise<void>;
  /** False if the row has already been removed. */
  remove(id: string): Promise<boolean>;
  /** The newest row with this key. */
  byKey(application: ApplicationId, key: string): Promise<OutboxRow | undefined>;
  /** Returns the given keys that have a row. */
  waitingKeys(application: ApplicationId, keys: readonly string[]): Promise<ReadonlySet<string>>;
  /** Removes the rows with these keys, so that their files are not stored. */
  removeKeys(application: ApplicationId, keys: readonly string[]): Promise<OutboxRow[]>;
  /** The keys with this prefix that have a row. */
  keysWithPrefix(application: ApplicationId, prefix: string): Promise<string[]>;
  /** The names of all staged files that have a row of this host. */
  stagedNames(host: HostId): Promise<ReadonlySet<string>>;
}
