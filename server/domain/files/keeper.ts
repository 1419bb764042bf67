// Stores a complete download: stages it with its checksum and type, and writes its row together with the outbox row in one
// transaction. Used for running sessions (download-watch.ts) and for ended ones (left-behind.ts).
import type { FileHandle } from 'node:fs/promises';
import type { ArtifactKey } from '../../engines/artifacts/keys.ts';
import type { StagedFile, Staging } from '../../engines/artifacts/staging.ts';
import type { CompleteDownload, DownloadRow, DownloadRows } from '../../engines/store/rows/downloads.ts';
import type { EventRows } from '../../engines/store/rows/events.ts';
import type { StoredBytes } from '../../engines/store/rows/retention.ts';
import { listHostileFolder } from '../../kit/hostile-file.ts';
import type { ApplicationId, DownloadId, SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Limits } from '../limits/limits.ts';
import type { Outbox } from './outbox.ts';
import { mimeTypeOf, SNIFFED_BYTES } from './sniff.ts';
import { downloadGuids, downloadState } from './whole-files.ts';

const READ_CHUNK_BYTES = 256 * 1024;
/** Twice the maximum number of downloads per session, because a partial file has two names for a moment. */
const NAMES_MAX = 20_000;

export interface KeeperParts extends Pick<Runtime, 'clock' | 'log' | 'host'> {
  readonly rows: DownloadRows;
  readonly stored: StoredBytes;
  readonly events: Pick<EventRows, 'append'>;
  readonly staging: Staging;
  readonly outbox: Outbox;
  readonly keyOf: (application: ApplicationId, session: SessionId, download: DownloadId) => ArtifactKey;
  readonly limits: Pick<Limits, 'effective'>;
  /** Maximum total size of the downloads of one session. */
  readonly sessionBytesMax: number;
  /** Name of the downloads folder within the session folder. */
  readonly downloadsFolder: string;
  /** Called when a download of a running session has been stored; `frame` is the id of the frame that started it. */
  readonly kept: (download: CompleteDownload, frame: string) => void;
}

/** The file exceeds a limit. A retry would therefore fail for the same reason. */
export class LimitExceeded extends Error {}

export const overSessionLimit = (bytes: number): string =>
  `the downloads of the session exceed their limit of ${bytes} bytes`;

export class Keeper {
  readonly parts: KeeperParts;

  constructor(parts: KeeperParts) {
    this.parts = parts;
  }

  /** The guids of all downloads that have a file in the box, complete or partial. */
  async guidsIn(folder: string): Promise<readonly string[]> {
    return downloadGuids(await listHostileFolder(folder, this.parts.downloadsFolder, NAMES_MAX));
  }

  async look(folder: string, guid: string): Promise<'whole' | 'partial' | 'absent'> {
    return downloadState(await listHostileFolder(folder, this.parts.downloadsFolder, NAMES_MAX), guid);
  }

  /** Throws `LimitExceeded` if a limit of the session or of its application would be exceeded. */
  async assertRoomFor(row: Pick<DownloadRow, 'applicationId' | 'sessionId'>, bytes: number): Promise<void> {
    const { rows, stored, limits, sessionBytesMax } = this.parts;
    const ofSession = await rows.bytesOf(row.applicationId, row.sessionId);
    if (ofSession + bytes > sessionBytesMax) throw new LimitExceeded(overSessionLimit(sessionBytesMax));
    const { maxStoredBytes } = await limits.effective(row.applicationId);
    const ofApplication = await stored.ofApplication(row.applicationId);
    if (ofApplication + bytes > maxStoredBytes)
      throw new LimitExceeded(`the application may store ${maxStoredBytes} bytes, and already stores ${ofApplication}`);
  }

  /**
   * Copies the first `bytes` bytes of a file that others may still have open. Undefined if the download had already
   * ended. The type is the one that the site sent; if there is none, it is detected from the content.
   */
  async keepCopy(
    row: DownloadRow,
    file: FileHandle,
    { bytes, mimeType }: { readonly bytes: number; readonly mimeType: string | undefined },
    signal: AbortSignal,
  ): Promise<CompleteDownload | undefined> {
    const head = { bytes: Buffer.alloc(0) };
    const staged = await this.parts.staging.write(firstBytes(file, bytes, head), signal);
    return this.#complete(row, staged, mimeType ?? mimeTypeOf(head.bytes, row.filename));
  }

  /** Stores a download without copying its file, which no other process has open. The caller removes its first name. */
  async keepLinked(row: DownloadRow, path: string): Promise<CompleteDownload | undefined> {
    const { head, ...staged } = await this.parts.staging.linkIn(path, SNIFFED_BYTES);
    return this.#complete(row, staged, mimeTypeOf(head, row.filename));
  }

  async #complete(row: DownloadRow, stagedFile: StagedFile, mimeType: string): Promise<CompleteDownload | undefined> {
    const { rows, staging, outbox, keyOf, clock } = this.parts;
    const { size, checksum } = stagedFile;
    const complete = { ...row, state: 'complete', mimeType, size, checksum, finishedAt: clock.now() } as const;
    const key = keyOf(row.applicationId, row.sessionId, row.id);
    const outboxRow = outbox.row(row.applicationId, { key, staged: stagedFile.name, contentType: mimeType });
    if (!(await rows.complete(complete, outboxRow))) {
      await staging.remove(stagedFile.name);
      return undefined;
    }
    outbox.prompt();
    return complete;
  }
}

async function* firstBytes(file: FileHandle, bytes: number, head: { bytes: Buffer }): AsyncGenerator<Buffer> {
  if (bytes === 0) return;
  for await (const chunk of file.createReadStream({
    ...{ start: 0, end: bytes - 1, autoClose: false, highWaterMark: READ_CHUNK_BYTES },
  })) {
    if (head.bytes.length < SNIFFED_BYTES) head.bytes = Buffer.concat([head.bytes, chunk.subarray(0, SNIFFED_BYTES)]);
    yield chunk;
  }
}
