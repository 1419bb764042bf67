// Requests, claims and reads hand-offs over HTTP, and renews, completes or cancels them with the lease token.
import assert from 'node:assert/strict';
import type { ClaimedHandoff, Handoff } from '../../contract/handoffs.ts';
import type { HttpResult } from './http.ts';
import type { Person } from './person.ts';
import type { TestServer } from './server.ts';

export const handoffsPath = ({ applicationId }: Pick<TestServer, 'applicationId'>, rest = ''): string =>
  `/v1/applications/${applicationId}/handoffs${rest}`;

export async function requestHandoff(
  server: TestServer,
  key: string,
  sessionId: string,
  fields: object = {},
): Promise<Handoff> {
  const body = { sessionId, instructions: 'Enter the code from your bank app.', ...fields };
  const response = await server.api<Handoff>('POST', handoffsPath(server), { key, body });
  assert.equal(response.status, 201, response.text);
  return response.body;
}

export async function claimHandoff(server: TestServer, person: Person, id: string): Promise<ClaimedHandoff> {
  const response = await person.post<ClaimedHandoff>(handoffsPath(server, `/${id}/claim`), {});
  assert.equal(response.status, 200, response.text);
  return response.body;
}

/** Sends a request with the lease token. */
export const sendWithLease = <T = Handoff>(
  server: TestServer,
  { handoffId, leaseToken }: Pick<ClaimedHandoff, 'handoffId' | 'leaseToken'>,
  verb: 'renew' | 'complete' | 'cancel',
  body: object = {},
): Promise<HttpResult<T>> =>
  server.api<T>('POST', handoffsPath(server, `/${handoffId}/${verb}`), { key: leaseToken, body });

export async function readHandoff(server: TestServer, key: string, id: string, query = ''): Promise<Handoff> {
  const response = await server.api<Handoff>('GET', handoffsPath(server, `/${id}${query}`), { key });
  assert.equal(response.status, 200, response.text);
  return response.body;
}
