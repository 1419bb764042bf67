// Hand-offs over HTTP: request, claim, complete, and the live view of the person in control.
import assert from 'node:assert/strict';
import type { ClaimedHandoff, Handoff } from '../../contract/handoffs.ts';
import type { HttpAnswer } from './http.ts';
import type { Person } from './person.ts';
import type { TestServer } from './server.ts';

export const handoffsPath = ({ applicationId }: Pick<TestServer, 'applicationId'>, rest = ''): string =>
  `/v1/applications/${applicationId}/handoffs${rest}`;

export async function requestHandoff(
  server: TestServer,
  key: string,
  sessionId: string,
  more: object = {},
): Promise<Handoff> {
  const body = { sessionId, instructions: 'Enter the code from your bank app.', ...more };
  const answer = await server.api<Handoff>('POST', handoffsPath(server), { key, body });
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
}

export async function claimHandoff(server: TestServer, person: Person, id: string): Promise<ClaimedHandoff> {
  const answer = await person.post<ClaimedHandoff>(handoffsPath(server, `/${id}/claim`), {});
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

/** Sends a request with the lease token. */
export const withLease = <T = Handoff>(
  server: TestServer,
  { handoffId, leaseToken }: Pick<ClaimedHandoff, 'handoffId' | 'leaseToken'>,
  verb: 'renew' | 'complete' | 'cancel',
  body: object = {},
): Promise<HttpAnswer<T>> =>
  server.api<T>('POST', handoffsPath(server, `/${handoffId}/${verb}`), { key: leaseToken, body });

export async function readHandoff(server: TestServer, key: string, id: string, query = ''): Promise<Handoff> {
  const answer = await server.api<Handoff>('GET', handoffsPath(server, `/${id}${query}`), { key });
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}
