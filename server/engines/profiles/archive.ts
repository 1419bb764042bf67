// The archive of a profile: a checked tar, compressed, sealed. Packed from a folder, which is hostile, and unpacked into a
// new one by whoever `FolderKeeper` is.
import { createHash, type Hash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib';
import {
  type CheckedFile,
  type CheckWish,
  checkedFiles,
  checkedTar,
  isCookieFile,
  noFacts,
  readFiles,
  tarOf,
} from './checked-tar.ts';
import type { DataKey } from './data-keys.ts';
import { Opener, SealBroken, Sealer } from './sealed-stream.ts';

/** Local data is written once and read a few times: the fastest level is the right one. */
const COMPRESSION = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** Each piece is a turn of the event loop; Node's own size makes four times as many. */
const UNPACKED_AT_ONCE_BYTES = 256 * 1024;

export interface FolderKeeper {
  readTar<T>(
    folder: string,
    names: readonly string[],
    take: (tar: Readable) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T>;
  writeFiles(folder: string, files: AsyncIterable<CheckedFile>, signal: AbortSignal): Promise<void>;
}

/** Under which key and name something is sealed. */
export interface Seal {
  readonly key: DataKey;
  readonly name: string;
}

export interface Packed {
  /** What it unpacks to. */
  readonly sizeBytes: number;
  readonly skipped: number;
  /** SHA-256 of the sealed file. */
  readonly checksum: Buffer;
}

/** Packs these entries of a hostile folder into a new file. */
export async function packFolder(
  keeper: FolderKeeper,
  { folder, names, file, seal }: { folder: string; names: readonly string[]; file: string; seal: Seal },
  signal: AbortSignal,
): Promise<Packed> {
  if (names.length === 0) return packFiles(new Map(), file, seal, signal);
  return keeper.readTar(folder, names, tar => sealInto(tar, file, seal, signal), signal);
}

export const packFiles = (
  files: ReadonlyMap<string, Buffer>,
  file: string,
  seal: Seal,
  signal: AbortSignal,
): Promise<Packed> => sealInto(tarOf(files), file, seal, signal);

async function sealInto(
  tar: AsyncIterable<Buffer>,
  file: string,
  { key, name }: Seal,
  signal: AbortSignal,
): Promise<Packed> {
  const facts = noFacts();
  const hash = createHash('sha256');
  await pipeline(
    Readable.from(checkedTar(tar, { strange: 'skip', facts })),
    createZstdCompress(COMPRESSION),
    new Sealer(key, name),
    (sealed: AsyncIterable<Buffer>) => hashed(sealed, hash),
    createWriteStream(file, { mode: 0o600, flush: true }),
    { signal },
  );
  return { sizeBytes: facts.bytes, skipped: facts.skipped, checksum: hash.digest() };
}

/** What is stored, with what its row says of it. */
export interface Sealed {
  readonly body: Readable;
  readonly checksum: Buffer;
  readonly seal: Seal;
}

/**
 * Unpacks into a folder of its owner's. Each part of it is proven before it is used; where one is not, this fails, and what
 * was unpacked so far is to be thrown away.
 */
export async function unpackInto(
  keeper: FolderKeeper,
  sealed: Sealed,
  { folder, under, withCookies }: { folder: string; under: string; withCookies: boolean },
  signal: AbortSignal,
): Promise<void> {
  const wish: CheckWish = { strange: 'refuse', under, ...(withCookies ? {} : { without: isCookieFile }) };
  await keeper.writeFiles(folder, checkedFiles(opened(sealed), wish), signal);
}

/** The same files sealed anew, under another key. */
export async function resealInto(sealed: Sealed, file: string, seal: Seal, signal: AbortSignal): Promise<Packed> {
  return sealInto(opened(sealed), file, seal, signal);
}

export const readArchived = (
  sealed: Sealed,
  isWanted: (name: string) => boolean,
  bytesMax: number,
): Promise<ReadonlyMap<string, Buffer>> => readFiles(opened(sealed), isWanted, bytesMax);

async function* opened({ body, checksum, seal }: Sealed): AsyncGenerator<Buffer, void> {
  const hash = createHash('sha256');
  const opener = new Opener(seal.key, seal.name);
  const plain = createZstdDecompress({ chunkSize: UNPACKED_AT_ONCE_BYTES });
  const flowing = pipeline(body, (bytes: AsyncIterable<Buffer>) => hashed(bytes, hash), opener, plain);
  flowing.catch(() => {});
  try {
    yield* plain;
  } catch {
    // What broke says why; here only that it did is seen.
  }
  await flowing;
  if (!hash.digest().equals(checksum)) throw new SealBroken('the stored bytes are not those that were stored');
}

async function* hashed(bytes: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer, void> {
  for await (const part of bytes) {
    hash.update(part);
    yield part;
  }
}
