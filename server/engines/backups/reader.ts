// Reads a backup, which is untrusted input: first the digest of the whole file, then the manifest, then the entries,
// which must be exactly those of the manifest. Files are created only below the target folder, never through a link.
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, chown, type FileHandle, lstat, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { type Entry, openPromise, type ZipFile } from 'yauzl';
import { writeSynced } from '../../kit/durable.ts';
import { Fault, reason } from '../../kit/fault.ts';
import { writeHashed } from '../../kit/hashed-write.ts';
import {
  DIGEST_CHARACTERS,
  damagedBackup,
  ENTRIES_MAX,
  type FileEntry,
  FORMAT_VERSION,
  MANIFEST_BYTES_MAX,
  MANIFEST_NAME,
  type Manifest,
  readManifest,
  readTrailer,
  TRAILER_BYTES_MAX,
} from './format.ts';

const TYPE_MASK = 0o170000;
const REGULAR_FILE_TYPE = 0o100000;
const ENCRYPTED_FLAG = 1;
const READ_CHUNK_BYTES = 1024 * 1024;

export interface OpenedBackup {
  readonly manifest: Manifest;
  /** Writes all files of the backup into an empty folder. With `shouldSetOwners`, also sets the recorded owners. */
  unpackInto(folder: string, options: { readonly shouldSetOwners: boolean }): Promise<void>;
  close(): void;
}

/** @throws Fault `backup_foreign`, `backup_newer` or `backup_damaged`. */
export async function openBackup(path: string): Promise<OpenedBackup> {
  await assertComplete(path);
  const zip = await openZip(path);
  try {
    const entries = await entriesOf(zip);
    const manifest = readManifest(await textOf(zip, entries.get(MANIFEST_NAME)));
    entries.delete(MANIFEST_NAME);
    assertSameFiles(manifest, entries);
    return {
      manifest,
      unpackInto: (folder, unpackOptions) => unpack(zip, entries, manifest, folder, unpackOptions),
      close: () => zip.close(),
    };
  } catch (error) {
    zip.close();
    throw toDamagedFault(error);
  }
}

async function assertComplete(path: string): Promise<void> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = await file.stat();
    const trailer = stats.isFile() ? readTrailer(await tailOf(file, stats.size)) : undefined;
    if (!trailer)
      throw new Fault('backup_foreign', `${path} is not a complete backup made by \`berth backup\`.`, {
        advice: 'Name another file, or copy this one again if copying it was interrupted.',
      });
    if (trailer.format > FORMAT_VERSION)
      throw new Fault(
        'backup_newer',
        `${path} has the format ${trailer.format}; this program supports formats up to ${FORMAT_VERSION}.`,
        {
          advice: 'Restore it with the version of Berth that made it.',
        },
      );
    const digest = await digestOf(file, stats.size - DIGEST_CHARACTERS);
    if (digest !== trailer.digest) throw damagedBackup('its digest does not match its content');
  } finally {
    await file.close();
  }
}

async function tailOf(file: FileHandle, size: number): Promise<string> {
  const length = Math.min(size, TRAILER_BYTES_MAX);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), { position: size - length });
  return buffer.toString('latin1', 0, bytesRead);
}

async function digestOf(file: FileHandle, bytes: number): Promise<string> {
  const hash = createHash('sha256');
  const readOptions = { start: 0, end: bytes - 1, autoClose: false, highWaterMark: READ_CHUNK_BYTES };
  for await (const chunk of file.createReadStream(readOptions)) hash.update(chunk);
  return hash.digest('hex');
}

async function openZip(path: string): Promise<ZipFile> {
  try {
    const zipOptions = { decodeStrings: true, strictFileNames: true, validateEntrySizes: true };
    return await openPromise(path, { lazyEntries: true, autoClose: false, ...zipOptions });
  } catch (error) {
    throw damagedBackup(reason(error));
  }
}

/** Returns the entries by name. @throws Fault unless all entries are regular files with unique names. */
async function entriesOf(zip: ZipFile): Promise<Map<string, Entry>> {
  if (zip.entryCount > ENTRIES_MAX + 1)
    throw damagedBackup(`it has ${zip.entryCount} entries; the limit is ${ENTRIES_MAX + 1}`);
  const entries = new Map<string, Entry>();
  for await (const entry of zip.eachEntry()) {
    const name = entry.fileName;
    const type = (entry.externalFileAttributes >>> 16) & TYPE_MASK;
    if (type !== REGULAR_FILE_TYPE) throw damagedBackup(`${JSON.stringify(name.slice(0, 120))} is not a regular file`);
    if ((entry.generalPurposeBitFlag & ENCRYPTED_FLAG) !== 0) throw damagedBackup(`${name} is encrypted`);
    if (entries.has(name)) throw damagedBackup(`it contains ${JSON.stringify(name.slice(0, 120))} twice`);
    entries.set(name, entry);
  }
  return entries;
}

async function textOf(zip: ZipFile, entry: Entry | undefined): Promise<string> {
  if (!entry) throw damagedBackup('it has no manifest');
  if (entry.uncompressedSize > MANIFEST_BYTES_MAX) throw damagedBackup('its manifest is too large');
  const parts: Buffer[] = [];
  for await (const part of await bytesOf(zip, entry)) parts.push(part);
  return Buffer.concat(parts).toString();
}

/**
 * Opens the bytes of an entry. The stream fails if there are more or fewer bytes than declared. An error that occurs
 * before the first read is reported by that read.
 */
async function bytesOf(zip: ZipFile, entry: Entry): Promise<Readable> {
  const stream = await zip.openReadStreamPromise(entry);
  return stream.on('error', () => {});
}

/** Checks that the archive contains exactly the files that the manifest lists, with the same sizes. */
function assertSameFiles(manifest: Manifest, entries: ReadonlyMap<string, Entry>): void {
  for (const { path, size } of manifest.entries) {
    const entry = entries.get(path);
    if (!entry) throw damagedBackup(`${path} is missing`);
    if (entry.uncompressedSize !== size) throw damagedBackup(`${path} does not have the size in the manifest`);
  }
  if (entries.size > manifest.entries.length) throw damagedBackup('it contains files that its manifest does not list');
}

async function unpack(
  zip: ZipFile,
  entries: ReadonlyMap<string, Entry>,
  { folders, entries: files }: Manifest,
  folder: string,
  { shouldSetOwners }: { readonly shouldSetOwners: boolean },
): Promise<void> {
  try {
    // Sorted by path, so that each folder is created after its parent. Modes are set at the end, because a folder may
    // not be writable.
    const sortedFolders = [...folders].sort((a, b) => (a.path < b.path ? -1 : 1));
    for (const { path } of sortedFolders) await mkdir(join(folder, path), { mode: 0o700 });
    for (const file of files) {
      const entry = entries.get(file.path);
      if (entry) await writeEntry(() => bytesOf(zip, entry), file, folder);
    }
    for (const { path, mode, uid, gid } of [...files, ...sortedFolders.reverse()]) {
      if (shouldSetOwners) await chown(join(folder, path), uid, gid);
      await chmod(join(folder, path), mode);
    }
  } catch (error) {
    throw toDamagedFault(error);
  }
}

async function writeEntry(
  read: () => Promise<Readable>,
  { path, size, sha256 }: FileEntry,
  folder: string,
): Promise<void> {
  const targetPath = join(folder, path);
  // `writeSynced` neither opens an existing file nor follows a link. `unpack` has created the folders of the path.
  const writtenFile = await writeSynced(targetPath, async file => writeHashed(file, await read()));
  if (writtenFile.size !== size || writtenFile.checksum !== sha256)
    throw damagedBackup(`${path} does not match its size and checksum in the manifest`);
  if (!(await lstat(targetPath)).isFile()) throw damagedBackup(`${path} is not a file`);
}

/** Errors from the zip reader mean that the backup is damaged. Disk errors do not. */
function toDamagedFault(error: unknown): unknown {
  const isDiskError = error instanceof Error && 'syscall' in error;
  return error instanceof Fault || isDiskError ? error : damagedBackup(reason(error));
}
