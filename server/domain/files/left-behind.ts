// Stores the downloads of ended sessions, whose files were moved out of the box before the box was removed. Downloads
// without a complete file are marked as failed. Depends only on rows and files, so it may be killed at any time and
// repeated.
import type { SalvagedFiles } from '../../engines/artifacts/salvage.ts';
import type { DownloadRow } from '../../engines/store/rows/downloads.ts';
import type { SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import { reason } from '../../kit/fault.ts';
import { type DownloadId, isUuid, newId, type SessionId } from '../../kit/ids.ts';
import { type DownloadKeeper, LimitExceeded } from './download-keeper.ts';
import { downloadName } from './file-names.ts';

const BATCH_MAX = 100;

export interface LeftBehindParts {
  readonly keeper: DownloadKeeper;
  readonly salvage: SalvagedFiles;
  readonly sessions: Pick<SessionRows, 'byId'>;
}

export async function storeLeftBehindFiles(parts: LeftBehindParts): Promise<{ taken: number; failed: number }> {
  const { keeper, salvage } = parts;
  const { rows, host, clock, log } = keeper.parts;
  let storedCount = 0;
  for (const id of await salvage.sessions())
    try {
      storedCount += await storeFilesOf(parts, id);
    } catch (error) {
      // The files of this session remain for the next run, and those of other sessions are stored.
      log.error('downloads.not_taken', { sessionId: id, reason: reason(error) });
    }
  let failedCount = 0;
  const waitingSessions = new Set(await salvage.sessions());
  for (const { sessionId, guid } of await rows.listOrphaned(host, BATCH_MAX))
    if (
      !waitingSessions.has(sessionId) &&
      (await rows.fail(sessionId, guid, INCOMPLETE_REASON, clock.now(), SERVICE_ACTOR))
    )
      failedCount += 1;
  return { taken: storedCount, failed: failedCount };
}

/**
 * Marks the downloads whose file is not complete as failed. Called before the session ends, so that the events of the
 * session include these downloads.
 */
export async function failIncompleteDownloads(
  { parts }: DownloadKeeper,
  session: SessionRow,
  completeFiles: readonly string[],
): Promise<void> {
  const { rows, clock, log } = parts;
  const completeFileGuids = new Set(completeFiles);
  try {
    for (const { state, guid } of await rows.ofSession(session.id))
      if (state === 'running' && !completeFileGuids.has(guid))
        await rows.fail(session.id, guid, INCOMPLETE_REASON, clock.now(), SERVICE_ACTOR);
  } catch (error) {
    // Not fatal: `storeLeftBehindFiles` also marks these downloads.
    log.warn('downloads.not_marked', { sessionId: session.id, reason: reason(error) });
  }
}

const SERVICE_ACTOR = { kind: 'service' } as const;
const INCOMPLETE_REASON = 'the session ended before the download was complete';

/** Returns the number of files that were stored. Skips a session whose files are still being moved. */
async function storeFilesOf({ keeper, salvage, sessions }: LeftBehindParts, id: string): Promise<number> {
  const session = await sessions.byId(id as SessionId);
  if (session && !session.endedAt) return 0;
  const rowsByGuid = new Map((await keeper.parts.rows.ofSession(id as SessionId)).map(row => [row.guid, row]));
  let storedCount = 0;
  for (const guid of await salvage.namesOf(id)) {
    const row = session && (rowsByGuid.get(guid) ?? unnamedDownload(session, guid, keeper));
    if (row?.state === 'running' && isUuid(guid))
      storedCount += await storeDownload(keeper, row, salvage.pathOf(id, guid));
    await salvage.remove(id, guid);
  }
  await salvage.removeFolder(id);
  return storedCount;
}

async function storeDownload(keeper: DownloadKeeper, row: DownloadRow, path: string): Promise<number> {
  const { rows, staging, clock } = keeper.parts;
  try {
    await keeper.assertRoomFor(row, await staging.sizeOf(path));
    return (await keeper.keepByLink(row, path)) ? 1 : 0;
  } catch (error) {
    if (!(error instanceof LimitExceeded)) throw error;
    await rows.begin(row);
    await rows.fail(row.sessionId, row.guid, error.message, clock.now(), SERVICE_ACTOR);
    return 0;
  }
}

/**
 * Returns a row for a download that began and completed while no server was connected. The name of the download is
 * therefore unknown.
 */
function unnamedDownload(
  { id: sessionId, applicationId }: SessionRow,
  guid: string,
  { parts }: DownloadKeeper,
): DownloadRow {
  const now = parts.clock.now();
  const identifyingFields = { id: newId<DownloadId>(now), applicationId, sessionId, hostId: parts.host, guid };
  return { ...identifyingFields, filename: downloadName(''), state: 'running', createdAt: now };
}
