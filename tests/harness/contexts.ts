// Sends requests about contexts.
import type { Context, ContextVersion } from '../../contract/contexts.ts';
import type { SessionEvent } from '../../contract/events.ts';
import type { TestServer } from './server.ts';
import { eventually } from './until.ts';

const SAVE_TIMEOUT_MS = 120_000;

/** Without `key`, here and below, the context belongs to the server's first application. */
export async function createContext(server: TestServer, body: object = {}, key?: string): Promise<Context> {
  const response = await server.api<Context>('POST', '/v1/browsers/contexts', { body, ...keyOption(key) });
  if (response.status !== 201) throw new Error(`the context was not created: ${response.status} ${response.text}`);
  return response.body;
}

export async function readContext(server: TestServer, id: string, key?: string): Promise<Context> {
  const response = await server.api<Context>('GET', `/v1/browsers/contexts/${id}`, keyOption(key));
  if (response.status !== 200) throw new Error(`context ${id} could not be read: ${response.status} ${response.text}`);
  return response.body;
}

const keyOption = (key: string | undefined): { key?: string } => (key === undefined ? {} : { key });

export async function listVersions(server: TestServer, id: string): Promise<ContextVersion[]> {
  const response = await server.api<ContextVersion[]>('GET', `/v1/browsers/contexts/${id}/versions`);
  if (response.status !== 200)
    throw new Error(`the versions of context ${id} could not be listed: ${response.status} ${response.text}`);
  return response.body;
}

export const waitForVersion = (server: TestServer, id: string, version: number, key?: string): Promise<Context> =>
  eventually(
    `context ${id} to have version ${version}`,
    () => readContext(server, id, key),
    context => context.version >= version,
    SAVE_TIMEOUT_MS,
  );

export async function listContextEvents(server: TestServer, sessionId: string): Promise<SessionEvent[]> {
  const path = `/v1/browsers/sessions/${sessionId}/events?limit=1000`;
  const response = await server.api<{ data: SessionEvent[] }>('GET', path);
  if (response.status !== 200)
    throw new Error(`the events of session ${sessionId} could not be listed: ${response.status} ${response.text}`);
  return response.body.data.filter(({ type }) => type.startsWith('context.'));
}

export const waitForContextEvent = (
  server: TestServer,
  session: string,
  type: string,
  withinMs = SAVE_TIMEOUT_MS,
): Promise<SessionEvent> =>
  eventually(
    `session ${session} to have the event ${type}`,
    async () => (await listContextEvents(server, session)).find(event => event.type === type),
    Boolean,
    withinMs,
  ).then(event => {
    if (!event) throw new Error(`session ${session} has no event ${type}`);
    return event;
  });

/** The body of a create whose session saves to the context. */
export const persistentBody = (id: string): { browserSettings: { context: { id: string; persist: boolean } } } => ({
  browserSettings: { context: { id, persist: true } },
});
