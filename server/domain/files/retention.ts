// Removes the files of a session when their retention period has ended (a month by default), and its row later (three
// months). The due times are in the rows. Objects are removed before the rows that list them, so an interrupted run can
// be repeated.
import type { Artifacts } from '../../engines/artifacts/artifacts.ts';
import type { ArtifactKey, ArtifactPrefix } from '../../engines/artifacts/keys.ts';
import type { OutboxRows } from '../../engines/store/rows/outbox.ts';
import type { RetentionRows, SessionDueForDeletion } from '../../engines/store/rows/retention.ts';
import { addMs } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Outbox } from './outbox.ts';

/** Maximum number of sessions per run. A long backlog is removed in several runs. */
const BATCH_MAX = 100;
/** Number of keys that are collected before their files are removed together. */
const KEYS_AT_ONCE_MAX = 500;

/** Deletes the rows of one kind of file, such as downloads. Called after the files of the session were removed. */
export type RowCleanup = (application: ApplicationId, session: SessionId) => Promise<void>;

export interface RetentionParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly rows: RetentionRows;
  readonly outboxRows: Pick<OutboxRows, 'keysWithPrefix'>;
  readonly artifacts: Pick<Artifacts, 'list'>;
  readonly outbox: Pick<Outbox, 'remove'>;
  readonly prefixOf: (application: ApplicationId, session: SessionId) => ArtifactPrefix;
  readonly rowCleanups: readonly RowCleanup[];
}

export interface RetentionPeriods {
  readonly filesMs: number;
  readonly sessionsMs: number;
}

/**
 * Returns when the files and the row of a session that ended at `endedAt` are to be removed. A row is kept at least as
 * long as its files.
 */
export const dueTimes = (
  { filesMs, sessionsMs }: RetentionPeriods,
  endedAt: Date,
): { filesDueAt: Date; forgetDueAt: Date } => ({
  filesDueAt: addMs(endedAt, filesMs),
  forgetDueAt: addMs(endedAt, Math.max(filesMs, sessionsMs)),
});

/** Returns the sessions whose files or rows a run would remove now: at most one batch of each. */
export async function sweepPlan({ rows, clock }: Pick<RetentionParts, 'rows' | 'clock'>): Promise<{
  readonly files: readonly SessionDueForDeletion[];
  readonly sessions: readonly SessionDueForDeletion[];
}> {
  const now = clock.now();
  const [files, sessions] = await Promise.all([rows.listFilesDue(now, BATCH_MAX), rows.listRowsDue(now, BATCH_MAX)]);
  return { files, sessions };
}

export async function sweep(parts: RetentionParts): Promise<{ files: number; sessions: number; failed: number }> {
  const { rows, clock, log } = parts;
  const counts = { files: 0, sessions: 0, failed: 0 };
  const processEach = async (
    counterName: 'files' | 'sessions',
    expiredSessions: readonly SessionDueForDeletion[],
    work: (one: SessionDueForDeletion) => Promise<void>,
  ): Promise<void> => {
    for (const session of expiredSessions)
      try {
        await work(session);
        counts[counterName] += 1;
      } catch (error) {
        counts.failed += 1;
        log.warn('retention.failed', { sessionId: session.id, what: counterName, reason: reason(error) });
      }
  };
  await processEach('files', await rows.listFilesDue(clock.now(), BATCH_MAX), one => removeFiles(parts, one));
  await processEach('sessions', await rows.listRowsDue(clock.now(), BATCH_MAX), one =>
    rows.forget(one.applicationId, one.id),
  );
  return counts;
}

async function removeFiles(parts: RetentionParts, { applicationId, id }: SessionDueForDeletion): Promise<void> {
  const { rows, outboxRows: unstoredRows, artifacts, outbox, prefixOf, rowCleanups } = parts;
  const prefix = prefixOf(applicationId, id);
  // Each key was checked when its file was posted.
  let keys = (await unstoredRows.keysWithPrefix(applicationId, prefix)) as ArtifactKey[];
  for await (const key of artifacts.list(prefix)) {
    keys.push(key);
    if (keys.length < KEYS_AT_ONCE_MAX) continue;
    await outbox.remove(applicationId, keys);
    keys = [];
  }
  await outbox.remove(applicationId, keys);
  for (const forget of rowCleanups) await forget(applicationId, id);
  await rows.forgetFiles(applicationId, id);
}
