// Extensions that sessions load.
import type { ApplicationId, ExtensionId } from '../../../kit/ids.ts';

export interface ExtensionRow {
  readonly id: ExtensionId;
  readonly applicationId: ApplicationId;
  /** SHA-256 of the package, in hex. The file is stored under this name. */
  readonly checksum: string;
  readonly fileName: string;
  readonly size: number;
  readonly name: string;
  readonly version: string;
  readonly manifestVersion: number;
  /** The id that Chromium gives the extension, if its package has a key. */
  readonly ownId?: string;
  readonly createdAt: Date;
  readonly usedAt: Date;
}

export interface ExtensionRows {
  /** Call before the file is stored or used again, so that the file is not removed in the meantime. */
  expectFile(application: ApplicationId, checksum: string, now: Date): Promise<void>;
  /** `limit`: the maximum number of extensions per application. */
  insert(row: ExtensionRow, limit: number): Promise<'inserted' | 'limit_reached'>;
  get(application: ApplicationId, id: ExtensionId): Promise<ExtensionRow | undefined>;
  /** Returns the extensions with these ids that exist. Marks them and their files as used now. */
  use(application: ApplicationId, ids: readonly ExtensionId[], now: Date): Promise<ExtensionRow[]>;
  remove(application: ApplicationId, id: ExtensionId): Promise<boolean>;
  /** Deletes at most `batchSize` extensions that have not been used since this time. Returns their number. */
  forget(usedBefore: Date, batchSize: number): Promise<number>;
  /**
   * Removes one file that no extension needs and that has not been used since this time. False if there is no such
   * file. If the call is interrupted at any point, it can be repeated safely.
   */
  dropFile(usedBefore: Date, remove: (application: ApplicationId, checksum: string) => Promise<void>): Promise<boolean>;
}
