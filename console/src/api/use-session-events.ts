// All events of a session, updated live. Each event invalidates the cached session.
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { SessionEvent } from '../../../contract/events.ts';
import { listen, type StreamState } from './event-stream.ts';

const BATCH_DELAY_MS = 150;

export function useSessionEvents(app: string, id: string): { events: readonly SessionEvent[]; state: StreamState } {
  const [state, setState] = useState<StreamState>('connecting');
  const [events, setEvents] = useState<readonly SessionEvent[]>([]);
  const client = useQueryClient();
  useEffect(() => {
    const unmountController = new AbortController();
    let pendingEvents: SessionEvent[] = [];
    let batchTimer: ReturnType<typeof setTimeout> | undefined;
    const flush = (): void => {
      const batch = pendingEvents;
      pendingEvents = [];
      batchTimer = undefined;
      setEvents(shown => [...shown, ...batch]);
      void client.invalidateQueries({ queryKey: ['session', app, id] });
    };
    const onEvents = (newEvents: readonly SessionEvent[]): void => {
      pendingEvents.push(...newEvents);
      batchTimer ??= setTimeout(flush, BATCH_DELAY_MS);
    };
    void listen({ app, sessionId: id, onEvents, onState: setState }, unmountController.signal);
    return () => {
      unmountController.abort();
      clearTimeout(batchTimer);
      setEvents([]);
    };
  }, [app, id, client]);
  return { events, state };
}
