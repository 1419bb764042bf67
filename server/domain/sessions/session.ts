// The statuses of a session and the transitions between them, how a session is found, and how a row is shown to
// callers.
import type { Warning } from '../../../contract/common.ts';
import { END_REASONS, type EndReason, type SessionStatus } from '../../../contract/sessions.ts';
import type { SessionRow, SessionRows } from '../../engines/store/rows/sessions.ts';
import { type ApplicationId, isUuid, type SessionId } from '../../kit/ids.ts';
import { isObject, textAt } from '../../kit/json.ts';
import { notFound } from '../faults.ts';
import type { SessionView } from './api.ts';

/**
 * The possible transitions from each status. A final status has no transitions. The database enforces the same rule.
 */
const TRANSITIONS = {
  PENDING: ['RUNNING', 'COMPLETED', 'TIMED_OUT', 'ERROR'],
  RUNNING: ['COMPLETED', 'TIMED_OUT', 'ERROR'],
  COMPLETED: [],
  TIMED_OUT: [],
  ERROR: [],
} as const satisfies Record<SessionStatus, readonly SessionStatus[]>;

/** Returns the session. Throws `not_found` if the application has no session with this id. */
export async function requireSession(
  rows: Pick<SessionRows, 'get'>,
  application: ApplicationId,
  id: string,
): Promise<SessionRow> {
  const row = isUuid(id) ? await rows.get(application, id as SessionId) : undefined;
  if (!row) throw notFound('Session', id);
  return row;
}

export const hasEnded = (row: SessionRow): boolean => TRANSITIONS[row.status].length === 0;

/**
 * The connection fields, included only in responses to callers who may connect, and only until the session has ended.
 */
export interface ConnectFields {
  readonly connectUrl: string;
  readonly seleniumRemoteUrl: string;
  readonly signingKey: string;
}

export function viewOf(row: SessionRow, connect?: ConnectFields): SessionView {
  const regionAsked = row.settings.regionAsked;
  const endReason = hasEnded(row) ? endReasonOf(row) : undefined;
  return {
    id: row.id,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    startedAt: (row.startedAt ?? row.createdAt).toISOString(),
    expiresAt: row.expiresAt.toISOString(),
    ...(row.endedAt ? { endedAt: row.endedAt.toISOString() } : {}),
    projectId: row.applicationId,
    status: row.status,
    proxyBytes: row.proxyBytes,
    keepAlive: row.keepAlive,
    region: row.region,
    ...contextOf(row),
    userMetadata: row.userMetadata,
    ...(connect && !hasEnded(row) ? connect : {}),
    ...(endReason ? { endReason } : {}),
    ...(endReason && row.end?.detail ? { endDetail: row.end.detail } : {}),
    ...(row.keyId ? { keyId: row.keyId } : {}),
    ...(row.pageUrl === undefined ? {} : { lastPage: { url: row.pageUrl, title: row.pageTitle ?? '' } }),
    ...(typeof regionAsked === 'string' ? { regionAsked } : {}),
  };
}

/** Reads the warnings of the create from the row. */
export function warningsOf({ settings: { warnings } }: SessionRow): Warning[] {
  return (Array.isArray(warnings) ? warnings : []).filter(isObject).flatMap(one => {
    const [code, path, message] = [textAt(one, 'code'), textAt(one, 'path'), textAt(one, 'message')];
    return code === undefined || path === undefined || message === undefined ? [] : [{ code, path, message }];
  });
}

/** The context, as the context watcher stored it. Lists also include the context, so it is read from the row. */
function contextOf({ settings: { context } }: SessionRow): { contextId?: string } {
  const id = typeof context === 'object' && context !== null && 'id' in context ? context.id : undefined;
  return typeof id === 'string' ? { contextId: id } : {};
}

const endReasonOf = (row: SessionRow): EndReason | undefined => END_REASONS.find(word => word === row.end?.reason);
