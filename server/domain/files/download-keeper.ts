// Stores a complete download: stages it with its checksum and type, and writes its row, its event and the outbox row in
// one transaction. Used for running sessions (download-watch.ts) and for ended sessions (left-behind.ts).
import type { FileHandle } from 'node:fs/promises';
import type { ArtifactKey } from '../../engines/artifacts/keys.ts';
import type { StagedFile, Staging } from '../../engines/artifacts/staging.ts';
import type { CompleteDownload, DownloadRow, DownloadRows, UsedBytes } from '../../engines/store/rows/downloads.ts';
import type { Actor } from '../../engines/store/rows/events.ts';
import { listHostileFolder } from '../../kit/hostile-file.ts';
import type { ApplicationId, DownloadId, SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Limits } from '../limits/limits.ts';
import type { Outbox } from './outbox.ts';
import { mimeTypeOf, SNIFFED_BYTES_MAX } from './sniff.ts';
import { downloadGuids, downloadState } from './whole-files.ts';

const READ_CHUNK_BYTES = 256 * 1024;
/** Twice the maximum number of downloads per session, because a partial file has two names for a moment. */
const FILE_NAMES_MAX = 20_000;

export interface DownloadKeeperParts extends Pick<Runtime, 'clock' | 'log' | 'host'> {
  readonly rows: DownloadRows;
  readonly staging: Staging;
  readonly outbox: Outbox;
  readonly keyOf: (application: ApplicationId, session: SessionId, download: DownloadId) => ArtifactKey;
  readonly limits: Pick<Limits, 'effective'>;
  /** Maximum total size of the downloads of one session. */
  readonly sessionBytesMax: number;
  /** Name of the downloads folder within the session folder. */
  readonly downloadsFolder: string;
  /** Called when a download of a running session has been stored. `frame` is the id of the frame that started it. */
  readonly onKept: (download: CompleteDownload, frame: string) => void;
}

/** The file exceeds a limit. A retry would therefore fail for the same reason. */
export class LimitExceeded extends Error {}

export const overSessionLimit = (bytes: number): string =>
  `the downloads of the session exceed their limit of ${bytes} bytes`;

export class DownloadKeeper {
  readonly parts: DownloadKeeperParts;

  constructor(parts: DownloadKeeperParts) {
    this.parts = parts;
  }

  /** Returns the guids of all downloads that have a file in the box, complete or partial. */
  async listGuids(folder: string): Promise<readonly string[]> {
    return downloadGuids(await listHostileFolder(folder, this.parts.downloadsFolder, FILE_NAMES_MAX));
  }

  async readFileState(folder: string, guid: string): Promise<'whole' | 'partial' | 'absent'> {
    return downloadState(await listHostileFolder(folder, this.parts.downloadsFolder, FILE_NAMES_MAX), guid);
  }

  /** Throws `LimitExceeded` if a limit of the session or of its application would be exceeded. */
  async assertRoomFor(row: Pick<DownloadRow, 'applicationId' | 'sessionId'>, bytes: number): Promise<void> {
    const assertRoom = await this.#createRoomAssertion(row, bytes);
    assertRoom(await this.parts.rows.usedBytes(row.applicationId, row.sessionId));
  }

  /**
   * Copies the first `bytes` bytes of a file that other processes may still have open. Undefined if the download had
   * already ended. The type of the download is the type that the site sent. If the site sent none, the type is detected
   * from the content.
   */
  async keepCopy(
    row: DownloadRow,
    file: FileHandle,
    { bytes, mimeType }: { readonly bytes: number; readonly mimeType: string | undefined },
    signal: AbortSignal,
  ): Promise<CompleteDownload | undefined> {
    const head = { bytes: Buffer.alloc(0) };
    const stagedCopy = await this.parts.staging.write(firstBytes(file, bytes, head), signal);
    return this.#complete(row, stagedCopy, mimeType ?? mimeTypeOf(head.bytes, row.filename), { kind: 'browser' });
  }

  /**
   * Stores a download without copying its file, which must not be open in another process. The file gets a second hard
   * link. The caller then removes the first link.
   */
  async keepByLink(row: DownloadRow, path: string): Promise<CompleteDownload | undefined> {
    const { head, ...linkedFile } = await this.parts.staging.linkIn(path, SNIFFED_BYTES_MAX);
    return this.#complete(row, linkedFile, mimeTypeOf(head, row.filename), { kind: 'service' });
  }

  async #createRoomAssertion({ applicationId }: Pick<DownloadRow, 'applicationId'>, bytes: number) {
    const { limits, sessionBytesMax } = this.parts;
    const { maxStoredBytes } = await limits.effective(applicationId);
    return ({ session, application }: UsedBytes): void => {
      if (session + bytes > sessionBytesMax) throw new LimitExceeded(overSessionLimit(sessionBytesMax));
      if (application + bytes > maxStoredBytes)
        throw new LimitExceeded(
          `the application would exceed its limit of ${maxStoredBytes} stored bytes, of which ${application} are in use`,
        );
    };
  }

  async #complete(
    row: DownloadRow,
    stagedFile: StagedFile,
    mimeType: string,
    actor: Actor,
  ): Promise<CompleteDownload | undefined> {
    const { rows, staging, outbox, keyOf, clock } = this.parts;
    const { size, checksum } = stagedFile;
    const now = clock.now();
    // `createdAt` is the time at which the download became complete. Lists are ordered by this time, so that list pages
    // do not shift.
    const times = { createdAt: now, finishedAt: now };
    const completeRow = { ...row, ...times, state: 'complete', mimeType, size, checksum } as const;
    const key = keyOf(row.applicationId, row.sessionId, row.id);
    const outboxRow = outbox.row(row.applicationId, { key, staged: stagedFile.name, contentType: mimeType });
    const assertRoom = await this.#createRoomAssertion(row, size);
    const isCompleted = await rows.complete(completeRow, outboxRow, actor, assertRoom).catch(async error => {
      if (error instanceof LimitExceeded) await staging.remove(stagedFile.name);
      throw error;
    });
    if (!isCompleted) {
      await staging.remove(stagedFile.name);
      return undefined;
    }
    outbox.trigger();
    return completeRow;
  }
}

async function* firstBytes(file: FileHandle, bytes: number, head: { bytes: Buffer }): AsyncGenerator<Buffer> {
  if (bytes === 0) return;
  for await (const chunk of file.createReadStream({
    ...{ start: 0, end: bytes - 1, autoClose: false, highWaterMark: READ_CHUNK_BYTES },
  })) {
    if (head.bytes.length < SNIFFED_BYTES_MAX)
      head.bytes = Buffer.concat([head.bytes, chunk.subarray(0, SNIFFED_BYTES_MAX)]);
    yield chunk;
  }
}
