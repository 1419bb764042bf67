// The log of a session, updated while it runs.
import { useQuery } from '@tanstack/react-query';
import type { SessionLog } from '../../../contract/logs.ts';
import { callWithHeaders } from './call.ts';
import { queryClient } from './queries.ts';

const LOOK_MS = 2_000;
/** Maximum number of entries shown. */
export const LOGS_SHOWN_MAX = 20_000;

export interface SessionLogs {
  readonly logs: readonly SessionLog[];
  /** Why there are no entries: `disabled` or `expired`. */
  readonly why?: string;
}

interface CachedLogs extends SessionLogs {
  readonly after?: string;
}

export function useSessionLogs(app: string, id: string, isOpen: boolean) {
  const queryKey = ['logs', app, id];
  return useQuery({
    queryKey,
    queryFn: async ({ signal }): Promise<CachedLogs> => {
      const known = queryClient.getQueryData<CachedLogs>(queryKey);
      if (known && known.logs.length >= LOGS_SHOWN_MAX) return known;
      const query = known?.after === undefined ? {} : { after: known.after };
      const { body, headers } = await callWithHeaders('listSessionLogs', { app, params: { id }, query, signal });
      const after = headers.get('x-next-after') ?? known?.after;
      const why = headers.get('x-logging');
      return {
        logs: [...(known?.logs ?? []), ...(body ?? [])],
        ...(after === undefined ? {} : { after }),
        ...(why ? { why } : {}),
      };
    },
    refetchInterval: isOpen ? LOOK_MS : false,
    structuralSharing: false,
  });
}
