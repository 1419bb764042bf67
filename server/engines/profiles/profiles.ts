// The interface through which other parts of the server use stored profiles: keys, staging, packing and unpacking. The
// caller decides where packed files are stored.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { JsonObject } from '../../kit/json.ts';
import { Secret } from '../../kit/secret.ts';
import {
  type FolderAccess,
  type PackedArchive,
  packFiles,
  packFolder,
  readArchivedFiles,
  resealInto,
  type Seal,
  type SealedArchive,
  unpackInto,
} from './archive.ts';
import { TarRefusedError } from './checked-tar.ts';
import type { ContextKeys, ContextOwner } from './context-keys.ts';
import { LevelDbError } from './leveldb/bytes.ts';
import { LOCAL_STORAGE_FOLDER, type StoredOrigin, writeLocalStorage } from './local-storage.ts';
import { openBytes, sealBytes } from './sealed-bytes.ts';
import { SealError } from './sealed-stream.ts';
import { Staging, stagedSessions } from './staging.ts';
import { TarError, TarTruncatedError } from './tar-reader.ts';

export type { PackedArchive as PackedProfile, Seal, SealedArchive as SealedProfile } from './archive.ts';
export type { StoredOrigin } from './local-storage.ts';
export type { Staging } from './staging.ts';

/** Maximum size of a context's local storage, which an export reads into memory. The usual size is a few megabytes. */
const LOCAL_STORAGE_BYTES_MAX = 128 * 1024 ** 2;
const COOKIES_BYTES_MAX = 64 * 1024 ** 2;
const KEY_BYTES = 32;
/** The folder of the Chromium profile in the folder of a box. */
const PROFILE_FOLDER = 'profile';

export interface ProfilesOptions {
  /** The staging folder, on the same disk as the session folders. */
  readonly root: string;
  readonly keys: ContextKeys;
  readonly folders: FolderAccess & { remove(folder: string): Promise<void> };
}

/** Whether an error means that the stored data is damaged, so that a retry cannot succeed. */
const isDamage = (error: unknown): boolean =>
  error instanceof SealError ||
  error instanceof TarError ||
  error instanceof TarRefusedError ||
  error instanceof LevelDbError ||
  error instanceof SyntaxError;

/** Whether an error means that a profile may not be stored: it is too large, or the tar is invalid. */
const isRefusal = (error: unknown): boolean =>
  error instanceof TarRefusedError || (error instanceof TarError && !(error instanceof TarTruncatedError));

/** Objects of the CDP type `Network.Cookie`. */
export type CookieList = readonly JsonObject[];

export class Profiles {
  readonly #options: ProfilesOptions;

  readonly isDamage = isDamage;
  readonly isRefusal = isRefusal;

  constructor(options: ProfilesOptions) {
    this.#options = options;
  }

  /** Creates a key for a context, and returns the wrapped key. */
  createKey(context: ContextOwner): Promise<Buffer> {
    return this.#options.keys.wrap(context, new Secret(randomBytes(KEY_BYTES)));
  }

  async unwrapSeal(context: ContextOwner, wrapped: Buffer, name: string): Promise<Seal> {
    return { key: await this.#options.keys.unwrap(context, wrapped), name };
  }

  staging(id: string): Staging {
    const { root, folders } = this.#options;
    return new Staging(root, id, folder => folders.remove(folder));
  }

  stagedSessions(): Promise<readonly string[]> {
    return stagedSessions(this.#options.root);
  }

  /** Packs the staged profile. If it is already packed, returns the earlier result. */
  async pack(staging: Staging, seal: Seal, signal: AbortSignal): Promise<PackedArchive> {
    const earlierRecord = await staging.packedRecord();
    if (earlierRecord) return { ...earlierRecord, checksum: Buffer.from(earlierRecord.checksum, 'hex') };
    await staging.discardArchive();
    const names = await staging.storedNames();
    const options = { folder: staging.profileFolder, names, file: staging.archiveFile, seal };
    const packedArchive = await packFolder(this.#options.folders, options, signal);
    await staging.recordPacked({ ...packedArchive, checksum: packedArchive.checksum.toString('hex') });
    return packedArchive;
  }

  /**
   * Unpacks the profile into the folder of a new box. If this fails, the files that were already unpacked are removed.
   */
  async unpack(
    sealedArchive: SealedArchive,
    folder: string,
    shouldIncludeCookies: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { folders } = this.#options;
    try {
      await unpackInto(folders, sealedArchive, { folder, prefix: `${PROFILE_FOLDER}/`, shouldIncludeCookies }, signal);
    } catch (error) {
      await folders.remove(join(folder, PROFILE_FOLDER));
      throw error;
    }
  }

  /** Copies the archive to a new one that is sealed with another key. */
  async reseal(
    sealedArchive: SealedArchive,
    staging: Staging,
    seal: Seal,
    signal: AbortSignal,
  ): Promise<PackedArchive> {
    return resealInto(sealedArchive, staging.archiveFile, seal, signal);
  }

  async sealCookies(cookies: CookieList, seal: Seal): Promise<Buffer> {
    return sealBytes(Buffer.from(JSON.stringify(cookies)), seal);
  }

  async openCookies(sealedCookies: Readable, seal: Seal): Promise<CookieList> {
    const cookies: unknown = JSON.parse((await this.openCookieText(sealedCookies, seal)).toString());
    return Array.isArray(cookies) ? cookies : [];
  }

  /** Opens sealed cookies and returns them as JSON. */
  async openCookieText(sealedCookies: Readable, seal: Seal): Promise<Buffer> {
    const bytes = await buffer(sealedCookies);
    if (bytes.length > COOKIES_BYTES_MAX)
      throw new Error(
        `the stored cookies are too large: ${bytes.length} bytes; the limit is ${COOKIES_BYTES_MAX} bytes`,
      );
    return openBytes(bytes, seal);
  }

  /** Returns the local storage files of an archive, for local-storage.ts to read. */
  localStorageFiles(sealedArchive: SealedArchive): Promise<ReadonlyMap<string, Buffer>> {
    return readArchivedFiles(sealedArchive, name => name.startsWith(LOCAL_STORAGE_FOLDER), LOCAL_STORAGE_BYTES_MAX);
  }

  /** Packs an archive that contains only this local storage. */
  async packLocalStorage(
    origins: readonly StoredOrigin[],
    staging: Staging,
    seal: Seal,
    { now, signal }: { now: Date; signal: AbortSignal },
  ): Promise<PackedArchive> {
    return packFiles(await writeLocalStorage(origins, now), staging.archiveFile, seal, signal);
  }
}
