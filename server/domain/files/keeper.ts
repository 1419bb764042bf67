// What makes a complete file of a browser ours: staged with its checksum and type, its row and its way to the store written
// in one transaction. Shared by the watch over a running session and the look after a dead one.
import type { FileHandle } from 'node:fs/promises';
import type { ArtifactKey } from '../../engines/artifacts/keys.ts';
import type { Staged, Staging } from '../../engines/artifacts/staging.ts';
import type { CompleteDownload, DownloadRow, DownloadRows } from '../../engines/store/rows/downloads.ts';
import type { EventRows } from '../../engines/store/rows/events.ts';
import type { StoredBytes } from '../../engines/store/rows/retention.ts';
import type { Clock } from '../../kit/clock.ts';
import { namesInHostile } from '../../kit/hostile-file.ts';
import type { ApplicationId, DownloadId, HostId, SessionId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';
import type { Limits } from '../limits/limits.ts';
import type { Outbox } from './outbox.ts';
import { mimeTypeOf, SNIFFED_BYTES } from './sniff.ts';
import { guidsAmong, stateAmong } from './whole-files.ts';

const READ_AT_ONCE_BYTES = 256 * 1024;
/** More than a session may have downloads: partial files have two names for a moment. */
const NAMES_MAX = 20_000;

export interface KeeperParts {
  readonly rows: DownloadRows;
  readonly stored: StoredBytes;
  readonly events: Pick<EventRows, 'append'>;
  readonly staging: Staging;
  readonly outbox: Outbox;
  readonly keyOf: (application: ApplicationId, session: SessionId, download: DownloadId) => ArtifactKey;
  readonly limits: Pick<Limits, 'effective'>;
  /** Of one session's downloads together. */
  readonly sessionBytesMax: number;
  /** Name of the folder in the session's own. */
  readonly downloadsFolder: string;
  /** A download of a running session is ours now; `frame` is where it began. */
  readonly kept: (download: CompleteDownload, frame: string) => void;
  readonly host: HostId;
  readonly clock: Clock;
  readonly log: Log;
}

/** It will not fit later either. */
export class TooMuch extends Error {}

export const overTheBound = (bytes: number): string => `the session's downloads passed their bound of ${bytes} bytes`;

export class Keeper {
  readonly parts: KeeperParts;

  constructor(parts: KeeperParts) {
    this.parts = parts;
  }

  /** Which downloads have a file in the box, whole or not. */
  async guidsIn(folder: string): Promise<readonly string[]> {
    return guidsAmong(await namesInHostile(folder, this.parts.downloadsFolder, NAMES_MAX));
  }

  async look(folder: string, guid: string): Promise<'whole' | 'partial' | 'absent'> {
    return stateAmong(await namesInHostile(folder, this.parts.downloadsFolder, NAMES_MAX), guid);
  }

  /** Throws `TooMuch` where the application would keep more than it may. */
  async demandRoomFor(row: Pick<DownloadRow, 'applicationId' | 'sessionId'>, bytes: number): Promise<void> {
    const { rows, stored, limits, sessionBytesMax } = this.parts;
    const ofSession = await rows.bytesOf(row.applicationId, row.sessionId);
    if (ofSession + bytes > sessionBytesMax) throw new TooMuch(overTheBound(sessionBytesMax));
    const { maxStoredBytes } = await limits.effective(row.applicationId);
    const ofApplication = await stored.ofApplication(row.applicationId);
    if (ofApplication + bytes > maxStoredBytes)
      throw new TooMuch(`the application may keep ${maxStoredBytes} bytes, and keeps ${ofApplication} already`);
  }

  /**
   * Copies a file that others may still have open: `bytes` of it, no more. Undefined when it was over already. Its type is
   * what its server said, else what its bytes say.
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

  /** Takes over a file of ours that nobody else has open. */
  async keepMoved(row: DownloadRow, path: string): Promise<CompleteDownload | undefined> {
    const { head, ...staged } = await this.parts.staging.take(path, SNIFFED_BYTES);
    return this.#complete(row, staged, mimeTypeOf(head, row.filename));
  }

  async #complete(row: DownloadRow, staged: Staged, mimeType: string): Promise<CompleteDownload | undefined> {
    const { rows, staging, outbox, keyOf, clock } = this.parts;
    const { size, checksum } = staged;
    const complete = { ...row, state: 'complete', mimeType, size, checksum, finishedAt: clock.now() } as const;
    const key = keyOf(row.applicationId, row.sessionId, row.id);
    const posted = outbox.row(row.applicationId, { key, staged: staged.name, contentType: mimeType });
    if (!(await rows.complete(complete, posted))) {
      await staging.remove(staged.name);
      return undefined;
    }
    outbox.prompt();
    return complete;
  }
}

async function* firstBytes(file: FileHandle, bytes: number, head: { bytes: Buffer }): AsyncGenerator<Buffer> {
  if (bytes === 0) return;
  for await (const chunk of file.createReadStream({
    ...{ start: 0, end: bytes - 1, autoClose: false, highWaterMark: READ_AT_ONCE_BYTES },
  })) {
    if (head.bytes.length < SNIFFED_BYTES) head.bytes = Buffer.concat([head.bytes, chunk.subarray(0, SNIFFED_BYTES)]);
    yield chunk;
  }
}
