// What the rest of the server knows of stored profiles: keys, staging, packing and unpacking. Where the packed files are
// kept is not known here.

import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { JsonObject } from '../../kit/json.ts';
import type { Secret } from '../../kit/secret.ts';
import {
  type FolderKeeper,
  type Packed,
  packFiles,
  packFolder,
  readArchived,
  resealInto,
  type Seal,
  type Sealed,
  unpackInto,
} from './archive.ts';
import { TarRefused } from './checked-tar.ts';
import { DataKeys } from './data-keys.ts';
import { LevelDbBroken } from './leveldb/bytes.ts';
import { LOCAL_STORAGE, type StoredOrigin, writeLocalStorage } from './local-storage.ts';
import { openBytes, sealBytes } from './sealed-bytes.ts';
import { SealBroken } from './sealed-stream.ts';
import { Staging, stagedSessions } from './staging.ts';
import { TarBroken } from './tar-reader.ts';

export type { Packed, Seal, Sealed } from './archive.ts';
export type { StoredOrigin } from './local-storage.ts';
export type { Staging } from './staging.ts';

/** Local storage of a whole context is some megabytes; it is read into memory for an export. */
const LOCAL_STORAGE_BYTES_MAX = 128 * 1024 ** 2;
const COOKIES_BYTES_MAX = 64 * 1024 ** 2;
/** Where Chromium has its profile in a box's folder. */
const PROFILE = 'profile';

export interface ProfilesWish {
  /** A folder of ours, on the disk of the sessions' folders. */
  readonly root: string;
  readonly secret: Secret;
  readonly keeper: FolderKeeper & { remove(folder: string): Promise<void> };
}

/** The stored bytes are not what was stored: another try will find them no different. */
const isDamage = (error: unknown): boolean =>
  error instanceof SealBroken ||
  error instanceof TarBroken ||
  error instanceof TarRefused ||
  error instanceof LevelDbBroken ||
  error instanceof SyntaxError;

/** A profile that is larger, or stranger, than may be kept. */
const isRefusal = (error: unknown): boolean => error instanceof TarRefused || error instanceof TarBroken;

/** In Chromium's words. */
export type CookieList = readonly JsonObject[];

export class Profiles {
  readonly #wish: ProfilesWish;
  readonly #keys: DataKeys;

  readonly isDamage = isDamage;
  readonly isRefusal = isRefusal;

  constructor(wish: ProfilesWish) {
    this.#wish = wish;
    this.#keys = new DataKeys(wish.secret);
  }

  /** A new key for a context, wrapped. */
  makeKey(context: string): Buffer {
    return this.#keys.make(context).wrapped;
  }

  sealOf(context: string, wrapped: Buffer, name: string): Seal {
    return { key: this.#keys.unwrap(context, wrapped), name };
  }

  staging(id: string): Staging {
    const { root, keeper } = this.#wish;
    return new Staging(root, id, folder => keeper.remove(folder));
  }

  stagedSessions(): Promise<readonly string[]> {
    return stagedSessions(this.#wish.root);
  }

  /** Seals the staged profile; done once. */
  async pack(staging: Staging, seal: Seal, signal: AbortSignal): Promise<Packed> {
    const done = await staging.packed();
    if (done) return { ...done, checksum: Buffer.from(done.checksum, 'hex') };
    await staging.freeArchive();
    const names = await staging.keptNames();
    const wish = { folder: staging.profile, names, file: staging.archiveFile, seal };
    const packed = await packFolder(this.#wish.keeper, wish, signal);
    await staging.notePacked({ ...packed, checksum: packed.checksum.toString('hex') });
    return packed;
  }

  /** Fills a new box's folder with the profile. When this fails, what it left is taken away. */
  async unpack(sealed: Sealed, folder: string, withCookies: boolean, signal: AbortSignal): Promise<void> {
    const { keeper } = this.#wish;
    try {
      await unpackInto(keeper, sealed, { folder, under: `${PROFILE}/`, withCookies }, signal);
    } catch (error) {
      await keeper.remove(join(folder, PROFILE));
      throw error;
    }
  }

  /** The same archive under another key. */
  async reseal(sealed: Sealed, staging: Staging, seal: Seal, signal: AbortSignal): Promise<Packed> {
    return resealInto(sealed, staging.archiveFile, seal, signal);
  }

  async sealCookies(cookies: CookieList, seal: Seal): Promise<Buffer> {
    return sealBytes(Buffer.from(JSON.stringify(cookies)), seal);
  }

  async openCookies(sealed: Readable, seal: Seal): Promise<CookieList> {
    const value: unknown = JSON.parse((await this.openCookieText(sealed, seal)).toString());
    return Array.isArray(value) ? value : [];
  }

  /** As JSON. */
  async openCookieText(sealed: Readable, seal: Seal): Promise<Buffer> {
    const bytes = await buffer(sealed);
    if (bytes.length > COOKIES_BYTES_MAX) throw new Error(`cookies of ${bytes.length} bytes`);
    return openBytes(bytes, seal);
  }

  /** The files of an archive in which local storage is; local-storage.ts reads them. */
  localStorageFiles(sealed: Sealed): Promise<ReadonlyMap<string, Buffer>> {
    return readArchived(sealed, name => name.startsWith(LOCAL_STORAGE), LOCAL_STORAGE_BYTES_MAX);
  }

  /** An archive with nothing but this local storage. */
  async packLocalStorage(
    origins: readonly StoredOrigin[],
    staging: Staging,
    seal: Seal,
    { now, signal }: { now: Date; signal: AbortSignal },
  ): Promise<Packed> {
    return packFiles(await writeLocalStorage(origins, now), staging.archiveFile, seal, signal);
  }
}
