// What is waiting for the person who is signed in, kept up to date by long polling. A hidden tab polls rarely,
// because a browser allows few connections to one service.
import { type QueryClient, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { Inbox } from '../../../contract/inbox.ts';
import { call, isOffered } from './call.ts';
import { isPerson } from './credentials.ts';

const KEY = ['inbox', 'counts'] as const;
const WAIT_SECONDS = 50;
const HIDDEN_POLL_INTERVAL_MS = 60_000;
const RETRY_DELAY_MS = 5_000;
/** If a response without a change arrives sooner than this, the server is stopping or has too many waiting requests. */
const EARLY_RESPONSE_MS_MAX = 10_000;

/**
 * Returns counts by application. Undefined while the counts are not known, and for a user who signed in with a token.
 */
export const useInbox = (): Inbox | undefined =>
  // Only `useLiveInbox` fills this query.
  useQuery<Inbox>({ queryKey: KEY, enabled: false, queryFn: () => call('readInbox', {}) }).data;

export const waitingCountOf = (inbox: Inbox | undefined, app: string | undefined): number => {
  const applicationCounts = inbox?.applications.find(({ applicationId }) => applicationId === app);
  return applicationCounts ? applicationCounts.approvals + applicationCounts.handoffs : 0;
};

export const totalWaitingCount = (inbox: Inbox | undefined): number =>
  (inbox?.applications ?? []).reduce((sum, { approvals, handoffs }) => sum + approvals + handoffs, 0);

/** Used once, in the layout of all pages. */
export function useLiveInbox(): void {
  const client = useQueryClient();
  useEffect(() => {
    if (!isPerson() || !isOffered('readInbox')) return undefined;
    const unmountController = new AbortController();
    void pollInbox(client, unmountController.signal);
    return () => unmountController.abort();
  }, [client]);
}

async function pollInbox(client: QueryClient, signal: AbortSignal): Promise<void> {
  let knownState: string | undefined;
  while (!signal.aborted)
    try {
      const isLongPoll = knownState !== undefined && !document.hidden;
      const query = isLongPoll ? { wait: WAIT_SECONDS, since: knownState ?? '' } : {};
      const requestStartMs = performance.now();
      const newInbox = await call('readInbox', { query, signal });
      if (signal.aborted) return;
      client.setQueryData(KEY, newInbox);
      if (knownState !== undefined && newInbox.state !== knownState)
        for (const { queryKey } of client.getQueryCache().findAll({ queryKey: ['inbox'] }))
          if (queryKey[1] !== KEY[1]) void client.invalidateQueries({ queryKey });
      const isEarlyResponse =
        isLongPoll && newInbox.state === knownState && performance.now() - requestStartMs < EARLY_RESPONSE_MS_MAX;
      knownState = newInbox.state;
      if (isEarlyResponse) await pause(RETRY_DELAY_MS, signal);
      if (document.hidden) await pause(HIDDEN_POLL_INTERVAL_MS, signal);
    } catch {
      await pause(RETRY_DELAY_MS, signal);
    }
}

/** Waits for `ms`, or until the tab becomes visible or hidden. */
const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    const finish = (): void => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', finish);
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    document.addEventListener('visibilitychange', finish);
    signal.addEventListener('abort', finish);
  });
