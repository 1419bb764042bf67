// Files that callers upload into a running session. They are stored in the session's uploads folder, which the browser
// can read but not write, and are removed together with the folder. The row is kept, so that a caller that lost the
// response can see which files arrived.
import { readFile } from 'node:fs/promises';
import type { UploadResponse } from '../../../contract/files.ts';
import type { Session } from '../../../contract/sessions.ts';
import type { Actor, EventRows } from '../../engines/store/rows/events.ts';
import type { StoredBytes } from '../../engines/store/rows/retention.ts';
import type { SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import type { UploadRow, UploadRows } from '../../engines/store/rows/uploads.ts';
import type { Clock } from '../../kit/clock.ts';
import { publishFile } from '../../kit/durable.ts';
import { type ApplicationId, type KeyId, newId, type SessionId, type UploadId } from '../../kit/ids.ts';
import { TurnQueue } from '../../kit/turns.ts';
import { fault, notFound, sessionNotRunning } from '../faults.ts';
import type { Limits } from '../limits/limits.ts';
import type { LiveSession, LiveSessions } from '../sessions/live.ts';
import { requireSession } from '../sessions/session.ts';
import { requireUploadName } from './file-names.ts';

/** The folder that official clients expect in paths, whatever the real folder is. */
const COMPAT_FOLDER = '/tmp/.uploads';

export interface UploadsParts {
  readonly rows: UploadRows;
  readonly stored: StoredBytes;
  readonly sessions: Pick<SessionRows, 'get'>;
  readonly liveSessions: LiveSessions;
  readonly events: Pick<EventRows, 'append'>;
  readonly limits: Pick<Limits, 'effective'>;
  /** Maximum total size of the uploads of one session. */
  readonly sessionBytesMax: number;
  readonly clock: Clock;
}

/** The sender of an upload: a caller with an agent key, or a viewer in the live view. A viewer has no key. */
export interface Uploader {
  readonly applicationId: ApplicationId;
  readonly keyId?: KeyId;
}

/** The maximum size of an upload, and the advice for the error if a file is larger. */
export interface UploadAllowance {
  readonly maxBytes: number;
  readonly advice: string;
  /** Number of bytes that the session and the application may still store. All uploads in progress share this room. */
  readonly room: { readonly session: number; readonly application: number };
}

/** A completely received file on local disk. */
export interface ReceivedFile {
  readonly fileName: string;
  readonly path: string;
  readonly size: number;
  readonly checksum: string;
}

export class Uploads {
  readonly #parts: UploadsParts;
  /** Serializes the uploads to a session, so that the file and the row of a name always come from the same upload. */
  readonly #turns = new TurnQueue<SessionId>();

  constructor(parts: UploadsParts) {
    this.#parts = parts;
  }

  /**
   * Checks whether an upload is allowed, and returns its maximum size. Must be called before the body is read. If
   * `mayBeRepeat` is true, the request may repeat an earlier request whose response is stored, so the session may have
   * ended. `upload` checks that again.
   */
  async allow(caller: Uploader, id: string, mayBeRepeat = false): Promise<UploadAllowance> {
    const row = mayBeRepeat
      ? await requireSession(this.#parts.sessions, caller.applicationId, id)
      : (await this.#requireRunning(caller, id)).row;
    const { rows, stored, limits, sessionBytesMax } = this.#parts;
    const { maxUploadBytes, maxStoredBytes } = await limits.effective(caller.applicationId);
    const uploads = await rows.ofSession(row.applicationId, row.id);
    const usedBytes = totalSizeOf(uploads);
    // The name is not known yet, and the upload may replace any file. `#keep` checks the exact sum of the session.
    const replaceableBytes = Math.max(0, ...uploads.map(({ size }) => size));
    const storedBytes = await stored.ofApplication(row.applicationId);
    const sessionRoom = Math.max(0, sessionBytesMax - usedBytes + replaceableBytes);
    const applicationRoom = Math.max(0, maxStoredBytes - storedBytes);
    const bounds: ReadonlyArray<Pick<UploadAllowance, 'maxBytes' | 'advice'>> = [
      {
        maxBytes: maxUploadBytes,
        advice:
          'This is the limit maxUploadBytes of the application. Send a smaller file, or ask an admin of the application for a higher limit.',
      },
      {
        maxBytes: sessionRoom,
        advice: `The uploads of one session may have at most ${sessionBytesMax} bytes in total, of which ${usedBytes} are in use. Send a smaller file, or use another session.`,
      },
      {
        maxBytes: applicationRoom,
        advice: `The limit maxStoredBytes of the application is ${maxStoredBytes} bytes, of which ${storedBytes} are in use. Delete downloads, or ask an admin of the application for a higher limit.`,
      },
    ];
    const smallestBound = bounds.reduce((one, other) => (other.maxBytes < one.maxBytes ? other : one));
    return { ...smallestBound, room: { session: sessionRoom, application: applicationRoom } };
  }

  async upload(caller: Uploader, id: string, file: ReceivedFile): Promise<UploadResponse> {
    const name = requireUploadName(file.fileName);
    const { row, liveSession } = await this.#requireRunning(caller, id);
    return this.#turns.run(row.id, () => this.#keep(caller, row, liveSession, { ...file, fileName: name }));
  }

  /** Returns the content of a file that was uploaded to a running session. */
  async content(caller: Uploader, id: string, fileName: string, bytesMax: number): Promise<Uint8Array> {
    const { row, liveSession } = await this.#requireRunning(caller, id);
    const uploadRows = await this.#parts.rows.ofSession(row.applicationId, row.id);
    const file = uploadRows.find(({ name }) => name === fileName);
    if (!file) throw notFound('Upload', fileName);
    if (file.size > bytesMax)
      throw fault(
        'payload_too_large',
        `${fileName} is too large for the tool browser_file_upload: it has ${file.size} bytes, and the limit is ${bytesMax}.`,
        {
          advice: 'Set the file over CDP with DOM.setFileInputFiles.',
        },
      );
    return readFile(`${liveSession.box.uploads}/${file.name}`);
  }

  /** Returns the uploads in the form used by the session resource. */
  async readViews(session: SessionRow): Promise<NonNullable<Session['uploads']>> {
    const rows = await this.#parts.rows.ofSession(session.applicationId, session.id);
    return rows.map(({ name, size, checksum, createdAt }) => ({
      ...{ fileName: name, size, checksum },
      createdAt: createdAt.toISOString(),
    }));
  }

  async #keep(
    caller: Uploader,
    session: SessionRow,
    liveSession: LiveSession,
    file: ReceivedFile,
  ): Promise<UploadResponse> {
    const { rows, events, sessionBytesMax, clock } = this.#parts;
    const { fileName, size, checksum } = file;
    const otherUploads = (await rows.ofSession(session.applicationId, session.id)).filter(
      ({ name }) => name !== fileName,
    );
    if (totalSizeOf(otherUploads) + size > sessionBytesMax) throw uploadTooLarge(sessionBytesMax);
    const now = clock.now();
    // The file is written before the row, because a row must not name a file that does not exist. If the row is not
    // written, a repeated upload replaces the file.
    if (!liveSession.isOpen) throw sessionNotRunning(session.id, 'ending');
    await publishFile(file.path, `${liveSession.box.uploads}/${fileName}`);
    const identifyingFields = { applicationId: session.applicationId, sessionId: session.id, name: fileName };
    const isStored = await rows.put({ id: newId<UploadId>(now), ...identifyingFields, size, checksum, createdAt: now });
    if (!isStored) throw sessionNotRunning(session.id, 'ending');
    const actor: Actor = caller.keyId ? { kind: 'agentKey', id: caller.keyId } : { kind: 'viewer' };
    await events.append(session.id, { type: 'file.uploaded', at: now, actor, detail: { fileName, size, checksum } });
    return { message: 'File uploaded', fileName, filePath: `${COMPAT_FOLDER}/${fileName}`, size, checksum };
  }

  async #requireRunning(caller: Uploader, id: string): Promise<{ row: SessionRow; liveSession: LiveSession }> {
    const { sessions, liveSessions } = this.#parts;
    const row = await requireSession(sessions, caller.applicationId, id);
    const liveSession = row.status === 'RUNNING' && !row.end ? liveSessions.get(row.id) : undefined;
    if (!liveSession) throw sessionNotRunning(id, row.status);
    return { row, liveSession };
  }
}

const totalSizeOf = (rows: readonly UploadRow[]): number => rows.reduce((bytes, { size }) => bytes + size, 0);

const uploadTooLarge = (bytes: number) =>
  fault(
    'payload_too_large',
    `The uploads of one session may have at most ${bytes} bytes in total, and this file would exceed that limit.`,
    {
      advice: 'Upload a smaller file, or use another session.',
      details: { limit: bytes },
    },
  );
