// Writes a stream into a file and hashes it: collected chunks are written together while the next ones are read.
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';

/** The size and the digest of the bytes that were written. */
export interface HashedFile {
  readonly size: number;
  /** SHA-256 in lower-case hex. */
  readonly checksum: string;
}

/** At most twice this many bytes are held in memory: one part is collected while another is written. */
const GATHERED_BYTES_MAX = 1024 * 1024;

export async function writeHashed(
  file: FileHandle,
  body: AsyncIterable<Uint8Array>,
  signal?: AbortSignal,
): Promise<HashedFile> {
  const hash = createHash('sha256');
  let size = 0;
  let gatheredChunks: Uint8Array[] = [];
  let gatheredBytes = 0;
  let pendingWrite: Promise<void> = Promise.resolve();
  const flush = async (): Promise<void> => {
    await pendingWrite;
    pendingWrite = writeAll(file, gatheredChunks);
    // If the write fails, the next flush throws the error; until then it must not be an unhandled rejection.
    pendingWrite.catch(() => {});
    gatheredChunks = [];
    gatheredBytes = 0;
  };
  for await (const chunk of body) {
    signal?.throwIfAborted();
    hash.update(chunk);
    size += chunk.length;
    gatheredChunks.push(chunk);
    gatheredBytes += chunk.length;
    if (gatheredBytes >= GATHERED_BYTES_MAX) await flush();
  }
  signal?.throwIfAborted();
  await flush();
  await pendingWrite;
  return { size, checksum: hash.digest('hex') };
}

async function writeAll(file: FileHandle, chunks: readonly Uint8Array[]): Promise<void> {
  let remainingChunks = chunks;
  while (remainingChunks.length > 0) {
    const { bytesWritten } = await file.writev([...remainingChunks]);
    remainingChunks = chunksAfterWrite(remainingChunks, bytesWritten);
  }
}

/** The chunks that remain after an incomplete write. */
function chunksAfterWrite(chunks: readonly Uint8Array[], count: number): readonly Uint8Array[] {
  let skippedBytes = count;
  const firstIndex = chunks.findIndex(chunk => {
    if (skippedBytes < chunk.length) return true;
    skippedBytes -= chunk.length;
    return false;
  });
  if (firstIndex === -1) return [];
  return chunks.slice(firstIndex).map((chunk, index) => (index === 0 ? chunk.subarray(skippedBytes) : chunk));
}
