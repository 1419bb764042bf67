// The log of a session, updated while it runs.
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import type { SessionLog } from '../../../contract/logs.ts';
import { callWithHeaders } from './call.ts';
import { queryClient } from './queries.ts';

const POLL_INTERVAL_MS = 2_000;
/** Maximum number of entries shown. */
const LOGS_SHOWN_MAX = 20_000;

export interface SessionLogs {
  readonly logs: readonly SessionLog[];
  /** Why there are no entries: `disabled` or `expired`. Absent: the session has a log. */
  readonly emptyReason?: string;
}

interface CachedLogs extends SessionLogs {
  readonly cursor?: string;
}

export function useSessionLogs(app: string, id: string, isOpen: boolean) {
  const queryKey = ['logs', app, id];
  const logsQuery = useQuery({
    queryKey,
    queryFn: async ({ signal }) => {
      let loadedLogs = queryClient.getQueryData<CachedLogs>(queryKey) ?? { logs: [] };
      for (let hasMore = true; hasMore && loadedLogs.logs.length < LOGS_SHOWN_MAX; ) {
        const nextLogs = await readNextLogs(app, id, loadedLogs, signal);
        // While the session is running, one list page is read per poll. The next poll reads the entries that follow.
        hasMore = !isOpen && nextLogs.cursor !== loadedLogs.cursor;
        loadedLogs = nextLogs;
      }
      return loadedLogs;
    },
    refetchInterval: isOpen ? POLL_INTERVAL_MS : false,
    structuralSharing: false,
  });
  const wasOpen = useRef(isOpen);
  // Reads the last entries, which are written when the session ends. This effect is declared after useQuery, so that
  // the query function already uses the new value of `isOpen`.
  useEffect(() => {
    if (wasOpen.current && !isOpen) void queryClient.invalidateQueries({ queryKey: ['logs', app, id] });
    wasOpen.current = isOpen;
  }, [app, id, isOpen]);
  return logsQuery;
}

/** Reads the next entries of the log, and returns the previous entries together with the new ones. */
async function readNextLogs(
  app: string,
  id: string,
  previousLogs: CachedLogs,
  signal: AbortSignal,
): Promise<CachedLogs> {
  const query = previousLogs.cursor === undefined ? {} : { after: previousLogs.cursor };
  const { body, headers } = await callWithHeaders('listSessionLogs', { app, params: { id }, query, signal });
  const cursor = headers.get('x-next-after') ?? previousLogs.cursor;
  const loggingHeader = headers.get('x-logging');
  return {
    logs: [...previousLogs.logs, ...(body ?? [])],
    ...(cursor === undefined ? {} : { cursor }),
    ...(loggingHeader ? { emptyReason: loggingHeader } : {}),
  };
}
