// Keeps the lists of an application's sessions up to date: events of the application invalidate the cache at most once
// a second, or once every five seconds if the user has loaded more than one list page.
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { listen, type StreamState } from './event-stream.ts';

const BATCH_DELAY_MS = 1_000;
const LONG_LIST_DELAY_MS = 5_000;

export function useLiveList(app: string): StreamState {
  const [state, setState] = useState<StreamState>('connecting');
  const client = useQueryClient();
  useEffect(() => {
    const unmountController = new AbortController();
    let batchTimer: ReturnType<typeof setTimeout> | undefined;
    const onEvents = (): void => {
      const lists = client.getQueriesData<{ readonly pages?: readonly unknown[] }>({ queryKey: ['sessions', app] });
      const hasLongList = lists.some(([, list]) => (list?.pages?.length ?? 0) > 1);
      batchTimer ??= setTimeout(
        () => {
          batchTimer = undefined;
          void client.invalidateQueries({ queryKey: ['sessions', app] });
        },
        hasLongList ? LONG_LIST_DELAY_MS : BATCH_DELAY_MS,
      );
    };
    void listen({ app, onEvents, onState: setState }, unmountController.signal);
    return () => {
      unmountController.abort();
      clearTimeout(batchTimer);
    };
  }, [app, client]);
  return state;
}
