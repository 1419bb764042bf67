// Extensions that sessions load.
import type { ApplicationId, ExtensionId } from '../../../kit/ids.ts';

export interface ExtensionRow {
  readonly id: ExtensionId;
  readonly applicationId: ApplicationId;
  /** SHA-256 of the package, hex; names its file. */
  readonly checksum: string;
  readonly fileName: string;
  readonly size: number;
  readonly name: string;
  readonly version: string;
  readonly manifestVersion: number;
  /** Chromium's id of it, where the package has a key. */
  readonly ownId?: string;
  readonly createdAt: Date;
  readonly usedAt: Date;
}

export interface ExtensionRows {
  /** Says that this file is about to be stored, or used again: it is not dropped before its time. */
  expectFile(application: ApplicationId, checksum: string, now: Date): Promise<void>;
  /** `limit` = most extensions of the application. */
  insert(row: ExtensionRow, limit: number): Promise<'inserted' | 'limit_reached'>;
  get(application: ApplicationId, id: ExtensionId): Promise<ExtensionRow | undefined>;
  /** Those that there are, marked as used now, their files too. */
  use(application: ApplicationId, ids: readonly ExtensionId[], now: Date): Promise<ExtensionRow[]>;
  remove(application: ApplicationId, id: ExtensionId): Promise<boolean>;
  /** Deletes those that nobody has used since; how many, at most `batch`. */
  forget(usedBefore: Date, batch: number): Promise<number>;
  /** Drops one file that no extension needs and nobody has used since; false when there is none. Safe to be killed in. */
  dropFile(usedBefore: Date, remove: (application: ApplicationId, checksum: string) => Promise<void>): Promise<boolean>;
}
