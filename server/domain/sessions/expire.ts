// Ends the sessions that are due: those past their time limit, those whose clients did not connect or return in time,
// and those whose end was decided but not completed. Also writes changes that could not be written while the database
// was unavailable. Due times are stored in the rows, so the task may run at any time.

import type { SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { DecidedEnd } from './actors.ts';
import type { Endings } from './endings.ts';
import type { LiveSession, LiveSessions } from './live.ts';

const BATCH_MAX = 100;

export interface ExpireParts extends Pick<Runtime, 'clock' | 'host'> {
  readonly rows: SessionRows;
  readonly liveSessions: LiveSessions;
  readonly endings: Endings;
}

/**
 * Whether `expireSessions` has nothing to do before `time`, according to the state of this process. Other processes may
 * have changed the rows.
 */
export function isNothingDueBefore(
  time: Date,
  { liveSessions, endings }: Pick<ExpireParts, 'liveSessions' | 'endings'>,
): boolean {
  const isIdle = ({ dueAt, presence }: LiveSession): boolean => dueAt >= time && !presence.hasUnwrittenChange;
  return !endings.hasUnwrittenEnds && liveSessions.all.every(isIdle);
}

export async function expireSessions(parts: ExpireParts): Promise<{ ended: number }> {
  const settledCount = await parts.endings.settle();
  for (const live of parts.liveSessions.all) await live.presence.retryUnwrittenChange();
  const now = parts.clock.now();
  const dueRows = await parts.rows.due(parts.host, now, BATCH_MAX);
  const ends = dueRows.flatMap(row => {
    if (parts.endings.isUnwritten(row.id)) return []; // `settle` has just tried to write this end.
    const live = parts.liveSessions.get(row.id);
    if (row.end) return [parts.endings.complete(row.id, row.end)];
    const end = dueEndOf(row, now, live?.presence.count ?? 0, live?.isHeldAt(now));
    return end ? [parts.endings.end(row.id, end)] : [];
  });
  const results = await Promise.allSettled(ends); // An end that fails is tried again by `settle`.
  return { ended: settledCount + results.filter(({ status }) => status === 'fulfilled').length };
}

/**
 * The end that is due, if any, of a session whose end has not been decided. An attached client or a hold takes
 * precedence over the client deadlines in the row, which may be out of date.
 */
export function dueEndOf(row: SessionRow, now: Date, clients: number, isHeld = false): DecidedEnd | undefined {
  if (row.expiresAt <= now) return { status: 'TIMED_OUT', reason: 'timed_out' };
  if (clients > 0 || isHeld) return undefined;
  if (row.connectBy && row.connectBy <= now) return { status: 'TIMED_OUT', reason: 'connect_timeout' };
  if (row.releaseAt && row.releaseAt <= now) return { status: 'COMPLETED', reason: 'client_disconnected' };
  return undefined;
}
