// The archive of a profile: a checked tar, compressed and sealed. It is packed from an untrusted folder and unpacked
// into a new folder, both through `FolderAccess`.
import { createHash, type Hash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib';
import {
  type CheckedFile,
  type CheckOptions,
  checkedFiles,
  checkedTar,
  emptyStats,
  isCookieFile,
  readFiles,
  tarOf,
} from './checked-tar.ts';
import type { DataKey } from './context-keys.ts';
import { Opener, SealError, Sealer } from './sealed-stream.ts';

/** The fastest compression level, because an archive is written once and rarely read. */
const COMPRESSION_OPTIONS = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/**
 * Each chunk takes one turn of the event loop. With Node's default chunk size, there would be four times as many turns.
 */
const UNPACKED_CHUNK_BYTES = 256 * 1024;

export interface FolderAccess {
  readTar<T>(
    folder: string,
    names: readonly string[],
    consume: (tar: Readable) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T>;
  writeFiles(folder: string, files: AsyncIterable<CheckedFile>, signal: AbortSignal): Promise<void>;
}

/** The key and the name that are used to seal data. */
export interface Seal {
  readonly key: DataKey;
  readonly name: string;
}

export interface PackedArchive {
  /** Size of the unpacked files in bytes. */
  readonly sizeBytes: number;
  readonly skipped: number;
  /** SHA-256 of the sealed file. */
  readonly checksum: Buffer;
}

/** Packs the named entries of an untrusted folder into a new file. */
export async function packFolder(
  folders: FolderAccess,
  { folder, names, file, seal }: { folder: string; names: readonly string[]; file: string; seal: Seal },
  signal: AbortSignal,
): Promise<PackedArchive> {
  if (names.length === 0) return packFiles(new Map(), file, seal, signal);
  return folders.readTar(folder, names, tar => sealInto(tar, file, seal, signal), signal);
}

export const packFiles = (
  files: ReadonlyMap<string, Buffer>,
  file: string,
  seal: Seal,
  signal: AbortSignal,
): Promise<PackedArchive> => sealInto(tarOf(files), file, seal, signal);

async function sealInto(
  tar: AsyncIterable<Buffer>,
  file: string,
  { key, name }: Seal,
  signal: AbortSignal,
): Promise<PackedArchive> {
  const stats = emptyStats();
  const hash = createHash('sha256');
  await pipeline(
    Readable.from(checkedTar(tar, { unexpectedEntryAction: 'skip', stats })),
    createZstdCompress(COMPRESSION_OPTIONS),
    new Sealer(key, name),
    (sealedChunks: AsyncIterable<Buffer>) => updateHash(sealedChunks, hash),
    createWriteStream(file, { mode: 0o600, flush: true }),
    { signal },
  );
  return { sizeBytes: stats.bytes, skipped: stats.skipped, checksum: hash.digest() };
}

/** A stored archive, with the checksum and the seal from its row. */
export interface SealedArchive {
  readonly body: Readable;
  readonly checksum: Buffer;
  readonly seal: Seal;
}

/**
 * Unpacks an archive into a folder. Every chunk is authenticated before it is used. If a chunk is invalid, this
 * function throws, and the caller must remove the files that were unpacked before.
 */
export async function unpackInto(
  folders: FolderAccess,
  sealedArchive: SealedArchive,
  { folder, prefix, shouldIncludeCookies }: { folder: string; prefix: string; shouldIncludeCookies: boolean },
  signal: AbortSignal,
): Promise<void> {
  const options: CheckOptions = {
    unexpectedEntryAction: 'refuse',
    prefix,
    ...(shouldIncludeCookies ? {} : { exclude: isCookieFile }),
  };
  await folders.writeFiles(folder, checkedFiles(decrypt(sealedArchive), options), signal);
}

/** Writes the files of an archive to a new archive with another seal. */
export async function resealInto(
  sealedArchive: SealedArchive,
  file: string,
  seal: Seal,
  signal: AbortSignal,
): Promise<PackedArchive> {
  return sealInto(decrypt(sealedArchive), file, seal, signal);
}

export const readArchivedFiles = (
  sealedArchive: SealedArchive,
  isWanted: (name: string) => boolean,
  bytesMax: number,
): Promise<ReadonlyMap<string, Buffer>> => readFiles(decrypt(sealedArchive), isWanted, bytesMax);

async function* decrypt({ body, checksum, seal }: SealedArchive): AsyncGenerator<Buffer, void> {
  const hash = createHash('sha256');
  const opener = new Opener(seal.key, seal.name);
  const unpackedStream = createZstdDecompress({ chunkSize: UNPACKED_CHUNK_BYTES });
  const pipelinePromise = pipeline(
    body,
    (bytes: AsyncIterable<Buffer>) => updateHash(bytes, hash),
    opener,
    unpackedStream,
  );
  pipelinePromise.catch(() => {});
  try {
    yield* unpackedStream;
  } catch {
    // `pipelinePromise` rejects with the cause. The error caught here only reports that the stream was closed.
  }
  await pipelinePromise;
  if (!hash.digest().equals(checksum)) throw new SealError('the checksum of the stored archive does not match');
}

async function* updateHash(bytes: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer, void> {
  for await (const part of bytes) {
    hash.update(part);
    yield part;
  }
}
