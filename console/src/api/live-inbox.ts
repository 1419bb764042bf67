// What is waiting for the person who is signed in, kept up to date by long polling. A hidden tab asks only rarely,
// because a browser allows few connections to one service.
import { type QueryClient, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { Inbox } from '../../../contract/inbox.ts';
import { call, isOffered } from './call.ts';
import { isPerson } from './credentials.ts';

const KEY = ['inbox', 'counts'] as const;
const WAIT_SECONDS = 50;
const HIDDEN_EVERY_MS = 60_000;
const RETRY_MS = 5_000;
/** If a response without a change arrives sooner than this, the server is stopping or has too many waiting requests. */
const EARLY_RESPONSE_MS = 10_000;

/**
 * Returns counts by application. Undefined while the counts are not known, and for a user who signed in with a token.
 */
export const useInbox = (): Inbox | undefined =>
  // Filled by `useLiveInbox` only.
  useQuery<Inbox>({ queryKey: KEY, enabled: false, queryFn: () => call('readInbox', {}) }).data;

export const waitingCountOf = (inbox: Inbox | undefined, app: string | undefined): number => {
  const own = inbox?.applications.find(({ applicationId }) => applicationId === app);
  return own ? own.approvals + own.handoffs : 0;
};

export const totalWaitingCount = (inbox: Inbox | undefined): number =>
  (inbox?.applications ?? []).reduce((sum, { approvals, handoffs }) => sum + approvals + handoffs, 0);

/** Used once, in the layout of all pages. */
export function useLiveInbox(): void {
  const client = useQueryClient();
  useEffect(() => {
    if (!isPerson() || !isOffered('readInbox')) return undefined;
    const gone = new AbortController();
    void keep(client, gone.signal);
    return () => gone.abort();
  }, [client]);
}

async function keep(client: QueryClient, signal: AbortSignal): Promise<void> {
  let known: string | undefined;
  while (!signal.aborted)
    try {
      const waits = known !== undefined && !document.hidden;
      const query = waits ? { wait: WAIT_SECONDS, since: known ?? '' } : {};
      const askedAt = performance.now();
      const now = await call('readInbox', { query, signal });
      if (signal.aborted) return;
      client.setQueryData(KEY, now);
      if (known !== undefined && now.state !== known)
        for (const { queryKey } of client.getQueryCache().findAll({ queryKey: ['inbox'] }))
          if (queryKey[1] !== KEY[1]) void client.invalidateQueries({ queryKey });
      const isIdle = waits && now.state === known && performance.now() - askedAt < EARLY_RESPONSE_MS;
      known = now.state;
      if (isIdle) await pause(RETRY_MS, signal);
      if (document.hidden) await pause(HIDDEN_EVERY_MS, signal);
    } catch {
      await pause(RETRY_MS, signal);
    }
}

/** Waits for `ms`, or until the tab becomes visible or hidden. */
const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    const done = (): void => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    document.addEventListener('visibilitychange', done);
    signal.addEventListener('abort', done);
  });
