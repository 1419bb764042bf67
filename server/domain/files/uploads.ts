// Files that callers send into a running session. The bytes stand in the session's uploads folder, which the browser reads
// and cannot write, and go with it; the row stays, so that a caller whose answer was lost sees what arrived.
import type { UploadAnswer } from '../../../contract/files.ts';
import type { Session } from '../../../contract/sessions.ts';
import type { Actor, EventRows } from '../../engines/store/rows/events.ts';
import type { StoredBytes } from '../../engines/store/rows/retention.ts';
import type { SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import type { UploadRow, UploadRows } from '../../engines/store/rows/uploads.ts';
import type { Clock } from '../../kit/clock.ts';
import { publishFile } from '../../kit/durable.ts';
import { type ApplicationId, isUuid, type KeyId, newId, type SessionId, type UploadId } from '../../kit/ids.ts';
import { Turns } from '../../kit/turns.ts';
import { fault, notFound, sessionNotRunning } from '../faults.ts';
import type { Limits } from '../limits/limits.ts';
import type { LiveSession, LiveSessions } from '../sessions/live.ts';
import { checkedUploadName } from './file-names.ts';

/** The path that official clients put before the name, whatever ours is. */
const SHOWN_FOLDER = '/tmp/.uploads';

export interface UploadsParts {
  readonly rows: UploadRows;
  readonly stored: StoredBytes;
  readonly sessions: Pick<SessionRows, 'get'>;
  readonly lives: LiveSessions;
  readonly events: Pick<EventRows, 'append'>;
  readonly limits: Pick<Limits, 'effective'>;
  /** Of one session's uploads together. */
  readonly sessionBytesMax: number;
  readonly clock: Clock;
}

/** Whose file it is: a caller's with a key, or that of a person in a live view of the application's session. */
export interface Uploader {
  readonly applicationId: ApplicationId;
  readonly keyId?: KeyId;
}

/** How large a file may be, and for the refusal of a larger one, which limit that is and what to do. */
export interface UploadRoom {
  readonly maxBytes: number;
  readonly advice: string;
  /** Bytes that may still be stored, for all files that come in at once. */
  readonly room: { readonly session: number; readonly application: number };
}

/** A file of ours that came in whole. */
export interface Received {
  readonly fileName: string;
  readonly path: string;
  readonly size: number;
  readonly checksum: string;
}

export class Uploads {
  readonly #parts: UploadsParts;
  /** Two of one name at once: file and row of the same one come last. */
  readonly #turns = new Turns<SessionId>();

  constructor(parts: UploadsParts) {
    this.#parts = parts;
  }

  /** Before a byte is read: whether it may come, and how much of it. */
  async allow(caller: Uploader, id: string): Promise<UploadRoom> {
    const { row } = await this.#running(caller, id);
    const { rows, stored, limits, sessionBytesMax } = this.#parts;
    const { maxUploadBytes, maxStoredBytes } = await limits.effective(caller.applicationId);
    const standing = sum(await rows.ofSession(row.applicationId, row.id));
    const kept = await stored.ofApplication(row.applicationId);
    const session = Math.max(0, sessionBytesMax - standing);
    const application = Math.max(0, maxStoredBytes - kept);
    const rooms: ReadonlyArray<Pick<UploadRoom, 'maxBytes' | 'advice'>> = [
      {
        maxBytes: maxUploadBytes,
        advice: 'This is the limit maxUploadBytes of the application. Send a smaller file, or have the limit raised.',
      },
      {
        maxBytes: session,
        advice: `The uploads of one session may have ${sessionBytesMax} bytes together, and have ${standing}. Send a smaller file, or use another session.`,
      },
      {
        maxBytes: application,
        advice: `The limit maxStoredBytes of the application is ${maxStoredBytes} bytes, of which ${kept} are in use. Delete downloads, or have the limit raised.`,
      },
    ];
    const least = rooms.reduce((one, other) => (other.maxBytes < one.maxBytes ? other : one));
    return { ...least, room: { session, application } };
  }

  async upload(caller: Uploader, id: string, file: Received): Promise<UploadAnswer> {
    const name = checkedUploadName(file.fileName);
    const { row, live } = await this.#running(caller, id);
    return this.#turns.take(row.id, () => this.#keep(caller, row, live, { ...file, fileName: name }));
  }

  /** As the session shows them. */
  async of(session: SessionRow): Promise<NonNullable<Session['uploads']>> {
    const rows = await this.#parts.rows.ofSession(session.applicationId, session.id);
    return rows.map(({ name, size, checksum, createdAt }) => ({
      ...{ fileName: name, size, checksum },
      createdAt: createdAt.toISOString(),
    }));
  }

  async #keep(caller: Uploader, session: SessionRow, live: LiveSession, file: Received): Promise<UploadAnswer> {
    const { rows, events, sessionBytesMax, clock } = this.#parts;
    const { fileName, size, checksum } = file;
    const others = (await rows.ofSession(session.applicationId, session.id)).filter(({ name }) => name !== fileName);
    if (sum(others) + size > sessionBytesMax) throw tooMuch(sessionBytesMax);
    const now = clock.now();
    // The file first: a row without it would be a lie, and a file without a row is sent again under the same name.
    if (!live.stands) throw sessionNotRunning(session.id, 'ending');
    await publishFile(file.path, `${live.box.uploads}/${fileName}`);
    const named = { applicationId: session.applicationId, sessionId: session.id, name: fileName };
    const put = await rows.put({ id: newId<UploadId>(now), ...named, size, checksum, createdAt: now });
    if (!put) throw sessionNotRunning(session.id, 'ending');
    const actor: Actor = caller.keyId ? { kind: 'agentKey', id: caller.keyId } : { kind: 'viewer' };
    await events.append(session.id, { type: 'file.uploaded', at: now, actor, detail: { fileName, size, checksum } });
    return { message: 'File uploaded', fileName, filePath: `${SHOWN_FOLDER}/${fileName}`, size, checksum };
  }

  async #running(caller: Uploader, id: string): Promise<{ row: SessionRow; live: LiveSession }> {
    const { sessions, lives } = this.#parts;
    const row = isUuid(id) ? await sessions.get(caller.applicationId, id as SessionId) : undefined;
    if (!row) throw notFound('Session', id);
    const live = row.status === 'RUNNING' && !row.end ? lives.get(row.id) : undefined;
    if (!live) throw sessionNotRunning(id, row.status);
    return { row, live };
  }
}

const sum = (rows: readonly UploadRow[]): number => rows.reduce((bytes, { size }) => bytes + size, 0);

const tooMuch = (bytes: number) =>
  fault('payload_too_large', `The uploads of one session may have ${bytes} bytes together, and this one passes it.`, {
    advice: 'Upload less, or use another session.',
    details: { limit: bytes },
  });
