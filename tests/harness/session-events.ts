// Lists the events of a session, and waits for later ones.
import type { EventType, SessionEvent, SessionEventPage } from '../../contract/events.ts';
import type { TestServer } from './server.ts';
import { eventually } from './until.ts';

export async function listEvents(server: TestServer, id: string, type?: EventType): Promise<readonly SessionEvent[]> {
  const typeQuery = type === undefined ? '' : `&type=${type}`;
  const path = `/v1/browsers/sessions/${id}/events?limit=1000${typeQuery}`;
  const response = await server.api<SessionEventPage>('GET', path);
  if (response.status !== 200)
    throw new Error(`the events of session ${id} could not be listed: ${response.status} ${response.text}`);
  return response.body.data;
}

/** Waits for a matching event of the type, and returns all events of the type. */
export function waitForSessionEvent(
  server: TestServer,
  id: string,
  type: EventType,
  satisfies: (detail: SessionEvent['detail']) => boolean = () => true,
): Promise<readonly SessionEvent[]> {
  return eventually(
    `${type} of session ${id}`,
    () => listEvents(server, id, type),
    events => events.some(({ detail }) => satisfies(detail)),
  );
}
